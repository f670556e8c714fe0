#include "base/check.h"
#include "fuzz/target.h"
#include "store/packed_rows.h"
#include "tests/verify/sample_run.h"

namespace verbatim::fuzz {
namespace {

// What is accepted is, byte for byte, what is written for it.
void CheckAccesses(std::int64_t seq, std::string_view bytes) {
  std::vector<AccessRow> rows;
  if (UnpackAccesses(seq, bytes, rows)) return;
  VERBATIM_CHECK(PackAccesses(seq, rows) == bytes, "{} accesses", rows.size());
  const auto count = CountPackedAccesses(bytes);
  VERBATIM_CHECK(count && *count == std::ssize(rows), "{} accesses", rows.size());
}

void CheckActivations(std::string_view bytes) {
  std::vector<ActivationRow> rows;
  if (UnpackActivations(bytes, rows)) return;
  VERBATIM_CHECK(PackActivations(rows) == bytes, "{} activations", rows.size());
}

void CheckActivity(std::string_view bytes) {
  std::vector<ActivityRow> rows;
  if (UnpackActivity(bytes, rows)) return;
  VERBATIM_CHECK(PackActivity(rows) == bytes, "{} tasks", rows.size());
}

void CheckManifest(std::string_view bytes) {
  std::vector<CheckpointLayer> rows;
  if (UnpackManifest(bytes, rows)) return;
  VERBATIM_CHECK(PackManifest(rows) == bytes, "{} layers", rows.size());
}

}  // namespace

// The first byte says which column the others are; the second, of accesses, is the subnet.
void RunPacked(std::string_view input) {
  if (input.size() < 2) return;
  const std::string_view bytes = input.substr(2);
  switch (input[0]) {
    case 'a':
      return CheckAccesses(static_cast<unsigned char>(input[1]), bytes);
    case 'v':
      return CheckActivations(bytes);
    case 't':
      return CheckActivity(bytes);
    case 'm':
      return CheckManifest(bytes);
    default:
      return;
  }
}

std::vector<std::string> PackedSeeds() {
  const auto sample = MakeSampleRun("full");
  const SubnetRow& row = sample.subnets.back();
  const std::string number(1, static_cast<char>(row.seq));
  const std::vector<ActivityRow> narrow = {{0, 0, Phase::kForward, 1000, 2500},
                                           {0, 1, Phase::kBackward, 3000, 3001}};
  const std::vector<ActivityRow> wide = {{0, 300, Phase::kUpdate, 5, 1LL << 40}};
  const std::vector<CheckpointLayer> layers = {{-1, {}}, {7, {}}};
  return {"a" + number + PackAccesses(row.seq, row.accesses),
          "v" + number + *PackActivations(row.activations), "t0" + *PackActivity(narrow),
          "t0" + *PackActivity(wide), "m0" + PackManifest(layers)};
}

}  // namespace verbatim::fuzz
