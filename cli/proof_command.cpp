#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/head_options.h"
#include "cli/output.h"
#include "store/proof.h"
#include "verify/head_check.h"
#include "verify/text.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

struct ProofOptions {
  fs::path proof;
  std::vector<fs::path> heads;
  fs::path key;
};

constexpr const char* kFooter =
    "Checks a proof without the record: that a subnet is under a head (show --subnet K --proof), "
    "or\n"
    "that the run of one head continues that of an older one (head --extends OLD --proof). What a\n"
    "proof says is worth as much as the heads: take them from where nobody can change them, or\n"
    "have their signatures checked with --key.\n"
    "\n"
    "Exit code 0: the proof holds; 1: it does not, or no such head was given; 3: a file cannot be\n"
    "read.\n"
    "\n"
    "Examples:\n"
    "  verbatim proof subnet12.proof --head run.head\n"
    "  verbatim proof subnet12.proof --head run.head --key run.key.pub\n"
    "  verbatim proof extension.proof --head monday.head --head tuesday.head";

std::string Describe(const ProvenTree& tree) {
  return fmt::format("{} with the content root {}", FormatCount(tree.subnets, "subnet", "subnets"),
                     ToShortHex(tree.content_root));
}

/// Why a head of the tree cannot be taken, or which one can.
class HeadSearch {
 public:
  HeadSearch(std::vector<KeptHead> heads, std::optional<PublicKey> key)
      : heads_(std::move(heads)), key_(key) {}

  /// Null where there is none; problem() then says why.
  const KeptHead* Find(const ProvenTree& tree) {
    problem_ = fmt::format("no head was given of {}", Describe(tree));
    for (const KeptHead& kept : heads_) {
      if (kept.head.subnets == tree.subnets && TreeOf(kept.head) != tree) {
        problem_ = fmt::format("{} has other roots than the proof for {}", Describe(kept),
                               FormatCount(tree.subnets, "subnet", "subnets"));
      }
    }
    for (const KeptHead& kept : heads_) {
      if (TreeOf(kept.head) != tree) continue;
      if (!key_ || IsSignedBy(kept.head, *key_)) return &kept;
      problem_ = fmt::format("{} bears no signature by {}", Describe(kept), ToShortHex(*key_));
    }
    return nullptr;
  }
  const std::string& problem() const { return problem_; }

 private:
  std::vector<KeptHead> heads_;
  std::optional<PublicKey> key_;
  std::string problem_;
};

/// What the proof shows, or why it shows nothing.
struct Finding {
  bool holds = false;
  std::string text;
};

Finding Judge(const SubnetProof& proof, HeadSearch& search) {
  const KeptHead* head = search.Find(proof.tree);
  if (head == nullptr) return {false, search.problem()};
  return {true, fmt::format("subnet {} is one of the {} of {}", proof.seq,
                            FormatCount(proof.tree.subnets, "subnet", "subnets"), Describe(*head))};
}

Finding Judge(const ExtensionProof& proof, HeadSearch& search) {
  const KeptHead* before = search.Find(proof.old_tree);
  if (before == nullptr) return {false, search.problem()};
  const KeptHead* after = search.Find(proof.tree);
  if (after == nullptr) return {false, search.problem()};
  if (before->head.start != after->head.start) {
    return {false, fmt::format("{} and {} are of runs that start differently", Describe(*before),
                               Describe(*after))};
  }
  return {true, fmt::format("{} covers a record that begins with that of {}", Describe(*after),
                            Describe(*before))};
}

Result<int> CheckProof(const ProofOptions& options) {
  ASSIGN_OR_RETURN(const Proof proof, ReadProof(options.proof));
  ASSIGN_OR_RETURN(auto heads, ReadKeptHeads(options.heads));
  std::optional<PublicKey> key;
  if (!options.key.empty()) {
    ASSIGN_OR_RETURN(key, ReadPublicKey(options.key));
  }
  HeadSearch search(std::move(heads), key);
  Finding finding{false, "its hashes do not lead to its root: it was changed"};
  if (Holds(proof)) {
    finding = std::visit([&](const auto& kind) { return Judge(kind, search); }, proof);
  }
  RETURN_IF_ERROR(
      WriteToStdout(fmt::format("{}: {}\n  {}\n", options.proof.string(),
                                finding.holds ? "holds" : "DOES NOT HOLD", finding.text)));
  return finding.holds ? 0 : 1;
}

}  // namespace

void AddProofCommand(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<ProofOptions>();
  CLI::App* command = app.add_subcommand("proof", "Checks a proof against heads, without a record");
  command->footer(kFooter);
  command->add_option("proof", options->proof, "The proof to check. Example: subnet12.proof")
      ->required()
      ->type_name("FILE");
  AddKeptHeadOptions(*command, options->heads, options->key)->required();
  command->callback(
      [options, &invocation] { invocation.action = [options] { return CheckProof(*options); }; });
}

}  // namespace verbatim
