#include "cli/head_options.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <system_error>

#include "cli/commands.h"
#include "cli/output_file.h"
#include "store/signing.h"
#include "supernet/spec_limits.h"

namespace verbatim {

namespace fs = std::filesystem;

CLI::Option* AddKeptHeadOptions(CLI::App& command, std::vector<fs::path>& heads, fs::path& key) {
  CLI::Option* head =
      command
          .add_option("--head", heads,
                      "A file of heads to check against; may be given several times. Example: "
                      "--head /kept/run.head")
          ->type_name("HEAD")
          ->check(NamedPath())
          ->expected(1)
          ->take_all();
  command
      .add_option("--key", key,
                  "Takes only heads that are signed with this public key's secret one. Example: "
                  "--key run.key.pub")
      ->type_name("PUB")
      ->check(NamedPath())
      ->needs(head);
  return head;
}

void AddHeadOptions(CLI::App& command, HeadOptions& options) {
  CLI::Option* file =
      command
          .add_option("--head-file", options.file,
                      "Adds heads of the record to this file, best on another machine's disk: at "
                      "the end of the run, and as --head-every says. Example: --head-file "
                      "/kept/run.head")
          ->type_name("FILE")
          ->check(NamedPath());
  command
      .add_option("--head-every", options.every,
                  "Also adds one each time that so many further subnets are committed. Example: "
                  "--head-every 100")
      ->type_name("N")
      ->check(WholeNumber(1, kMaxSubnets))
      ->needs(file);
  command
      .add_option("--sign", options.key,
                  "Signs them with this secret key (verbatim keygen). Example: --sign run.key")
      ->type_name("KEY")
      ->check(NamedPath())
      ->needs(file);
}

Status CheckHeadOptions(const HeadOptions& options, const fs::path& record, bool is_new_run) {
  if (options.file.empty()) return {};
  RETURN_IF_ERROR(CheckOutputs({{"--head-file", options.file}}, {record}));
  RETURN_IF_ERROR(RefuseInputs({{"--head-file", options.file}}, {options.key}));
  std::error_code error;
  if (is_new_run && fs::is_regular_file(options.file, error) &&
      fs::file_size(options.file, error) > 0) {
    return UsageError(
        fmt::format("--head-file {} exists already: it may hold an earlier run's heads",
                    options.file.string()),
        "Name another file, or remove that one yourself.");
  }
  if (!options.key.empty()) RETURN_IF_ERROR(ReadSecretKey(options.key));
  return {};
}

Result<std::function<Status(Head)>> HeadKeeper(const HeadOptions& options) {
  if (options.file.empty()) return nullptr;
  std::shared_ptr<const SecretKey> key;
  if (!options.key.empty()) {
    ASSIGN_OR_RETURN(const SecretKey read, ReadSecretKey(options.key));
    key = std::make_shared<const SecretKey>(read);
  }
  return [key, file = options.file](Head head) -> Status {
    if (key != nullptr) SignHead(*key, head);
    return AppendHead(file, head);
  };
}

}  // namespace verbatim
