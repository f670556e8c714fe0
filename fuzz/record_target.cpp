#include <SQLiteCpp/SQLiteCpp.h>

#include <fstream>
#include <sstream>

#include "base/check.h"
#include "fuzz/scratch_file.h"
#include "fuzz/target.h"
#include "recorder/step_recorder.h"
#include "store/reader.h"
#include "store/record_file.h"
#include "store/writer.h"
#include "tests/verify/sample_run.h"
#include "verify/examine.h"

namespace verbatim::fuzz {
namespace {

// Everything that a command reads of a record, whether or not it is sound.
void ReadAll(const RecordReader& reader) {
  (void)reader.Run();
  (void)reader.Environment();
  (void)reader.SubnetCount();
  (void)reader.AccessCount();
  (void)reader.Evaluations();
  (void)reader.Resumptions();
  (void)reader.Checkpoints();
  (void)reader.SchemaProblems();
  (void)reader.HeadNow();
  (void)reader.LeavesFrom(0);
  (void)reader.Lineage(1);
  (void)reader.Subnet(3, {true, true, true});
  (void)reader.ForEachSubnet({true, true, true}, [](const SubnetRow&) { return true; });
}

void CheckWritten(const Status& status) {
  VERBATIM_CHECK(status.has_value(), "{}", status.error().message);
}

// The record's bytes, with pages of 512, so that a mutation has a chance to hit something.
std::string TakeShrunk(const std::filesystem::path& path) {
  {
    SQLite::Database database(path.string(), SQLite::OPEN_READWRITE);
    database.exec("PRAGMA page_size = 512");
    database.exec("VACUUM");
  }
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  std::filesystem::remove(path);
  return bytes.str();
}

std::string SmallRecord(const std::string& level) {
  const SampleRun sample = MakeSampleRun(level);
  const std::filesystem::path path = ScratchFolder() / "seed.db";
  auto writer = RecordWriter::Create(path, sample.run, sample.environment, sample.layers, true);
  VERBATIM_CHECK(writer.has_value(), "{}", writer.error().message);
  CheckWritten((*writer)->WriteSubnets(sample.subnets));
  CheckWritten((*writer)->Close(RunStatus::kComplete, "", sample.evaluations));
  return TakeShrunk(path);
}

std::string SmallStepRecord() {
  const std::filesystem::path path = ScratchFolder() / "seed.db";
  StepRun run;
  run.record_level = "full";
  run.spec.gradients = true;
  const std::vector<StepLayer> layers = {
      {StepLayerKind::kParameter, "weight", DType::kFloat32, {2, 3}, "", {"tied"}, MakeDigest(1)},
      {StepLayerKind::kCaptured, "output", DType::kFloat32, {}, "", {}, {}}};
  StepRecorderOptions options;
  options.overwrite = true;
  auto recorder = StepRecorder::Open(path, run, layers, {}, options);
  VERBATIM_CHECK(recorder.has_value(), "{}", recorder.error().message);
  for (std::int64_t step = 0; step < 20; ++step) {
    StepRow row;
    row.facts = {10 * step, MakeDigest(2, step), {{"lr", "0.1"}}, {}, {MakeDigest(3, step)}};
    if (step == 7) row.facts.outside = {0};
    row.layers = {{0, MakeDigest(4, step), MakeDigest(5, step), MakeDigest(6, step)}};
    row.captured = {{0, 1, MakeDigest(7, step)}};
    CheckWritten((*recorder)->Record(std::move(row)));
  }
  CheckWritten((*recorder)->Close(RunStatus::kComplete, ""));
  return TakeShrunk(path);
}

}  // namespace

void RunRecord(std::string_view input) {
  const auto path = WriteScratch("run.db", input);
  if (const auto reader = RecordReader::Open(path)) {
    ReadAll(**reader);
    (void)ExamineRecord(**reader, "run.db");
  }
  for (const auto& companion : CompanionFiles(path)) std::filesystem::remove(companion);
}

std::vector<std::string> RecordSeeds() {
  return {SmallRecord("losses"), SmallRecord("weights"), SmallRecord("full"), SmallStepRecord()};
}

}  // namespace verbatim::fuzz
