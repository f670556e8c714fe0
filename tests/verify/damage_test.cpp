// Single flipped bits and cut tails of a record: each is found, or what the record says is proven
// to be what it said before. VERBATIM_FLIPS sets their number, and VERBATIM_TEST_SEED their places.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>

#include "recorder/content_digest.h"
#include "store/checkpoint_files.h"
#include "store/record_file.h"
#include "store/seal.h"
#include "store/writer.h"
#include "tests/temporary_folder.h"
#include "tests/verify/sample_checkpoints.h"
#include "verify/examine.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

std::uint64_t Number(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

ResumptionRow SampleResumption() {
  ResumptionRow row;
  row.tool_version = "0.1.0";
  row.command_line = "verbatim resume run.db";
  row.policy = "causal";
  row.device = "cpu";
  row.partition = "equal";
  row.started_utc = "2026-01-31T12:00:03Z";
  row.facts_json = "{}";
  return row;
}

/// A record with rows in every table, and its checkpoints.
void WriteRecord(const fs::path& path) {
  SampleRun sample = MakeSampleRun("full");
  UseDigestsOfContents(sample);
  Seal(sample);
  auto writer = RecordWriter::Create(path, sample.run, sample.environment, sample.layers, false);
  ASSERT_TRUE(writer) << writer.error().message;
  const std::span subnets(sample.subnets);
  ASSERT_TRUE((*writer)->WriteSubnets(subnets.first(5)));
  writer->reset();
  writer = RecordWriter::Reopen(path, SampleResumption());
  ASSERT_TRUE(writer) << writer.error().message;
  ASSERT_TRUE((*writer)->WriteSubnets(subnets.subspan(5)));
  ASSERT_TRUE((*writer)->WriteCheckpoint(TakeCheckpoint(sample, 6, CheckpointFolder(path)), 2));
  ASSERT_TRUE((*writer)->WriteCheckpoint(TakeCheckpoint(sample, 12, CheckpointFolder(path)), 2));
  ASSERT_TRUE((*writer)->Close(RunStatus::kComplete, "", sample.evaluations));
}

/// Everything that a record says, computed from the rows alone; the first error where there is one.
Result<std::vector<Hash256>> WhatIsSaid(const RecordReader& reader) {
  ASSIGN_OR_RETURN(const RunInfo run, reader.Run());
  ASSIGN_OR_RETURN(const auto environment, reader.Environment());
  ASSIGN_OR_RETURN(const auto layers, reader.Layers());
  ASSIGN_OR_RETURN(const auto evaluations, reader.Evaluations());
  ASSIGN_OR_RETURN(const auto resumptions, reader.Resumptions());
  ASSIGN_OR_RETURN(const auto checkpoints, reader.Checkpoints());
  std::vector<Hash256> said = {StartSeal(run, layers),
                               CircumstancesSeal(run, environment, resumptions),
                               EndSeal(run, evaluations)};
  for (const CheckpointRow& row : checkpoints) said.push_back(CheckpointSeal(row));
  RETURN_IF_ERROR(reader.ForEachSubnet({true, true, true}, [&](const SubnetRow& subnet) {
    said.push_back(ContentLeaf(subnet));
    said.push_back(LayoutLeaf(subnet));
    return true;
  }));
  return said;
}

/// A record, and what becomes of changed copies of it.
class Damage : public ::testing::Test {
 protected:
  void SetUp() override {
    WriteRecord(folder_ / "whole.db");
    bytes_ = Contents(folder_ / "whole.db");
    const auto reader = RecordReader::Open(folder_ / "whole.db");
    ASSERT_TRUE(reader) << reader.error().message;
    const Verdict verdict = ExamineRecord(**reader, (folder_ / "whole.db").string());
    ASSERT_TRUE(IsSound(verdict));
    fs::rename(CheckpointFolder(folder_ / "whole.db"), CheckpointFolder(Changed()));
    for (const auto& file : fs::directory_iterator(CheckpointFolder(Changed()))) {
      checkpoint_files_.push_back(file.path());
    }
    ASSERT_GT(checkpoint_files_.size(), 2u);
    said_ = *WhatIsSaid(**reader);
    ASSERT_EQ(said_.size(), 3u + 2u + 2u * kSampleSubnets);
  }

  /// Where changed copies of the record go; its checkpoints are there.
  fs::path Changed() const { return folder_ / "changed.db"; }

  static std::string Contents(const fs::path& path) {
    std::ostringstream bytes;
    bytes << std::ifstream(path, std::ios::binary).rdbuf();
    return bytes.str();
  }
  static void Write(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }

  static bool IsSound(const Verdict& verdict) {
    const bool has_failed =
        std::any_of(verdict.checks.begin(), verdict.checks.end(),
                    [](auto& check) { return check.outcome == Outcome::kFailed; });
    return !has_failed && !verdict.damaged && !verdict.first_difference;
  }

  /// Whether anything is found in a record of these bytes. Where nothing is, it must say the same.
  bool IsFound(const std::string& bytes) {
    const fs::path path = Changed();
    for (const fs::path& companion : CompanionFiles(path)) fs::remove(companion);
    fs::remove(path);
    Write(path, bytes);
    const auto reader = RecordReader::Open(path);
    if (!reader || !IsSound(ExamineRecord(**reader, path.string()))) return true;
    const auto said = WhatIsSaid(**reader);
    EXPECT_TRUE(said && *said == said_) << "a change that nobody found";
    return false;
  }

  const test::TemporaryFolder folder_;
  std::string bytes_;
  std::vector<fs::path> checkpoint_files_;
  std::vector<Hash256> said_;
};

TEST_F(Damage, FindsFlippedBits) {
  const std::uint64_t seed = Number("VERBATIM_TEST_SEED", std::random_device{}());
  const std::uint64_t flips = Number("VERBATIM_FLIPS", 1000);
  std::mt19937_64 random(seed);
  std::uint64_t found = 0;
  for (std::uint64_t i = 0; i < flips; ++i) {
    const std::size_t bit = random() % (bytes_.size() * 8);
    SCOPED_TRACE(testing::Message() << "bit " << bit % 8 << " of byte " << bit / 8);
    bytes_[bit / 8] = static_cast<char>(bytes_[bit / 8] ^ 1 << bit % 8);
    found += IsFound(bytes_) ? 1 : 0;
    bytes_[bit / 8] = static_cast<char>(bytes_[bit / 8] ^ 1 << bit % 8);
  }
  std::cout << flips << " flips: " << found << " found, " << flips - found
            << " in what holds no content; again with: VERBATIM_TEST_SEED=" << seed
            << " VERBATIM_FLIPS=" << flips << std::endl;
  EXPECT_GT(found, flips / 10);
}

TEST_F(Damage, FindsEveryChangeOfACheckpoint) {
  const std::uint64_t seed = Number("VERBATIM_TEST_SEED", std::random_device{}());
  const std::uint64_t flips = Number("VERBATIM_FLIPS", 1000) / 5;
  std::mt19937_64 random(seed);
  for (std::uint64_t i = 0; i < flips; ++i) {
    const fs::path& file = checkpoint_files_[random() % checkpoint_files_.size()];
    const std::string good = Contents(file);
    std::string bytes = good;
    const std::size_t bit = random() % (bytes.size() * 8);
    if (i % 10 == 0) {
      bytes.resize(bit / 8);
    } else {
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
    }
    Write(file, bytes);
    EXPECT_TRUE(IsFound(bytes_)) << file << ", bit " << bit << "; VERBATIM_TEST_SEED=" << seed;
    Write(file, good);
  }
}

TEST_F(Damage, FindsCutTails) {
  const std::uint64_t cuts = Number("VERBATIM_FLIPS", 1000) / 10;
  for (std::uint64_t i = 0; i < cuts; ++i) {
    const std::size_t left = bytes_.size() * i / cuts;
    EXPECT_TRUE(IsFound(bytes_.substr(0, left))) << left << " of " << bytes_.size() << " bytes";
  }
}

}  // namespace
}  // namespace verbatim
