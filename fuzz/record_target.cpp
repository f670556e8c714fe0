#include <SQLiteCpp/SQLiteCpp.h>

#include <fstream>
#include <sstream>

#include "base/check.h"
#include "fuzz/scratch_file.h"
#include "fuzz/target.h"
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

// Pages of 512 bytes, so that a mutation has a chance to hit something.
void Shrink(const std::filesystem::path& path) {
  SQLite::Database database(path.string(), SQLite::OPEN_READWRITE);
  database.exec("PRAGMA page_size = 512");
  database.exec("VACUUM");
}

std::string SmallRecord(const std::string& level) {
  const SampleRun sample = MakeSampleRun(level);
  const std::filesystem::path path = ScratchFolder() / "seed.db";
  auto writer = RecordWriter::Create(path, sample.run, sample.environment, sample.layers, true);
  VERBATIM_CHECK(writer.has_value(), "{}", writer.error().message);
  CheckWritten((*writer)->WriteSubnets(sample.subnets));
  CheckWritten((*writer)->Close(RunStatus::kComplete, "", sample.evaluations));
  Shrink(path);
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  std::filesystem::remove(path);
  return bytes.str();
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
  return {SmallRecord("losses"), SmallRecord("weights"), SmallRecord("full")};
}

}  // namespace verbatim::fuzz
