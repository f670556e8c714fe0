#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/output_file.h"
#include "store/proof.h"
#include "store/reader.h"
#include "verify/head_check.h"
#include "verify/text.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

struct HeadCommandOptions {
  fs::path record;
  fs::path output;
  fs::path key;
  fs::path extends;
  fs::path proof;
};

constexpr const char* kFooter =
    "Says in one line of JSON what the record holds now: roots of the trees over its subnets, and\n"
    "seals over everything else. Kept where the record's owner cannot write, it shows later "
    "whether\n"
    "the record was changed, cut or replaced (verify --head). Nothing is verified here: take "
    "heads\n"
    "early, and verify the record itself with verbatim verify.\n"
    "\n"
    "-o adds the line to a file of heads. The record must extend the heads that the file holds\n"
    "already, and those of --extends: else nothing is written.\n"
    "\n"
    "Exit code 0: done; 1: the record does not extend an older head; 3: a file cannot be read; 4:\n"
    "one cannot be written.\n"
    "\n"
    "Examples:\n"
    "  verbatim head run.db\n"
    "  verbatim head run.db -o /kept/run.head --sign run.key\n"
    "  verbatim head run.db --extends monday.head -o tuesday.head --proof extension.proof\n"
    "  verbatim verify run.db --head /kept/run.head --key run.key.pub";

Status CheckPaths(const HeadCommandOptions& options) {
  const OutputOption output{"-o", options.output};
  const OutputOption proof{"--proof", options.proof};
  RETURN_IF_ERROR(CheckOutputs({output, proof}, {options.record}));
  RETURN_IF_ERROR(RefuseInputs({output, proof}, {options.key}));
  return RefuseInputs({proof}, {options.extends});
}

/// The heads that the record must extend: of --extends, and of a file that goes on.
Result<std::vector<KeptHead>> OlderHeads(const HeadCommandOptions& options) {
  std::vector<fs::path> files;
  if (!options.extends.empty()) files.push_back(options.extends);
  std::error_code error;
  const bool goes_on = fs::is_regular_file(options.output, error) &&
                       fs::file_size(options.output, error) > 0 &&
                       !fs::equivalent(options.output, options.extends, error);
  if (goes_on) files.push_back(options.output);
  return ReadKeptHeads(files);
}

/// Prints what the record does not agree with; whether there is nothing.
Result<bool> Extends(const RecordReader& reader, const HeadCommandOptions& options,
                     const std::vector<KeptHead>& heads) {
  ASSIGN_OR_RETURN(const auto mismatches, CompareWithHeads(reader, heads, std::nullopt));
  if (mismatches.empty()) return true;
  std::string text = fmt::format("{} does not extend {}:\n", options.record.string(),
                                 FormatCount(std::ssize(mismatches), "head", "heads"));
  for (const HeadMismatch& mismatch : mismatches) text += "  " + mismatch.problem + "\n";
  RETURN_IF_ERROR(WriteToStdout(text));
  return false;
}

Status WriteProof(const RecordReader& reader, const HeadCommandOptions& options, const Head& head) {
  if (options.proof.empty()) return {};
  ASSIGN_OR_RETURN(const std::vector<Head> older, ReadHeads(options.extends));
  ASSIGN_OR_RETURN(const ExtensionProof proof,
                   ProveExtension(TreeOf(older.back()), TreeOf(head), reader.ContentTree(),
                                  reader.LayoutTree()));
  return WriteResult(ProofToJson(proof), {"--proof", options.proof});
}

Result<int> TakeHead(const HeadCommandOptions& options) {
  RETURN_IF_ERROR(CheckPaths(options));
  std::optional<SecretKey> key;
  if (!options.key.empty()) {
    ASSIGN_OR_RETURN(key, ReadSecretKey(options.key));
  }
  ASSIGN_OR_RETURN(const auto reader, RecordReader::Open(options.record));
  ASSIGN_OR_RETURN(const std::vector<KeptHead> older, OlderHeads(options));
  if (!older.empty()) {
    ASSIGN_OR_RETURN(const bool extends, Extends(*reader, options, older));
    if (!extends) return 1;
  }
  ASSIGN_OR_RETURN(Head head, reader->HeadNow());
  if (key) SignHead(*key, head);
  RETURN_IF_ERROR(WriteProof(*reader, options, head));
  if (options.output.empty()) {
    RETURN_IF_ERROR(WriteToStdout(HeadToJson(head)));
    return 0;
  }
  RETURN_IF_ERROR(AppendHead(options.output, head));
  RETURN_IF_ERROR(WriteToStdout(
      fmt::format("{}: head of {}, content root {}\n", options.output.string(),
                  FormatCount(head.subnets, "subnet", "subnets"), ToShortHex(head.content_root))));
  return 0;
}

}  // namespace

void AddHeadCommand(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<HeadCommandOptions>();
  CLI::App* command = app.add_subcommand("head", "Says in one line what a record holds now");
  command->footer(kFooter);
  command->add_option("record", options->record, "The record. Example: run.db")
      ->required()
      ->type_name("RUN.db");
  command
      ->add_option("-o,--output", options->output,
                   "Adds the head to this file instead of printing it. Example: -o /kept/run.head")
      ->type_name("HEAD")
      ->check(NamedPath());
  command
      ->add_option("--sign", options->key,
                   "Signs it with this secret key (verbatim keygen). Example: --sign run.key")
      ->type_name("KEY")
      ->check(NamedPath());
  CLI::Option* extends =
      command
          ->add_option("--extends", options->extends,
                       "Checks first that the record extends every head in this file. Example: "
                       "--extends monday.head")
          ->type_name("OLD")
          ->check(NamedPath());
  command
      ->add_option("--proof", options->proof,
                   "Writes a proof that it extends the last head of OLD, to be checked with "
                   "verbatim proof. Example: --extends monday.head --proof extension.proof")
      ->type_name("FILE")
      ->check(NamedPath())
      ->needs(extends);
  command->callback(
      [options, &invocation] { invocation.action = [options] { return TakeHead(*options); }; });
}

}  // namespace verbatim
