// A small record with every kind of row, and a folder to put it in.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "store/reader.h"
#include "store/record.h"
#include "store/writer.h"
#include "tests/temporary_folder.h"

namespace verbatim::test {

inline std::string ReadFile(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

inline void WriteFile(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// Sixteen bytes that count up from `first`.
inline Digest SampleDigest(int first) {
  Digest digest;
  for (auto& byte : digest.bytes) byte = static_cast<std::uint8_t>(first++);
  return digest;
}

/// Thirty-two bytes that count up from `first`.
inline Hash256 SampleHash(int first) {
  Hash256 hash;
  for (auto& byte : hash.bytes) byte = static_cast<std::uint8_t>(first++);
  return hash;
}

inline RunInfo SampleRun() {
  RunInfo run;
  run.tool_version = "0.1.0";
  run.spec_json = R"({"name":"sample"})";
  run.spec_folder = "/specs";
  run.command_line = std::string("verbatim train 'a b'\0c", 22);
  run.policy = "causal";
  run.record_level = "full";
  run.device = "cuda:1";
  run.stages = 3;
  run.in_flight = 5;
  run.partition = "1,2";
  run.subnets_planned = 7;
  run.dataset_digest = SampleDigest(100);
  run.started_utc = "2026-01-31T12:00:00Z";
  return run;
}

inline std::vector<EnvironmentRow> SampleEnvironment() {
  return {{"cpu.model", "sample"}, {"libtorch.version", "2.11.0"}};
}

inline constexpr int kSampleLayers = 40;

inline std::vector<LayerRow> SampleLayers() {
  std::vector<LayerRow> layers;
  for (int i = 0; i < kSampleLayers; ++i) {
    layers.push_back({i, fmt::format("block{}.{}", i / 2, i % 2), i / 2, i % 2, "conv kernel 3",
                      i % 2 == 0, SampleDigest(i)});
  }
  return layers;
}

/// `accesses` accesses (at most kSampleLayers), two activations, three tasks.
inline SubnetRow SampleSubnet(std::int64_t seq, int accesses = 3) {
  SubnetRow subnet;
  subnet.seq = seq;
  subnet.choices = {0, 65535, static_cast<std::uint16_t>(seq)};
  subnet.samples = {0, 4294967295u, static_cast<std::uint32_t>(seq), 256};
  subnet.batch_digest = SampleDigest(static_cast<int>(seq));
  subnet.loss_bits = 0x3f800000u + static_cast<std::uint32_t>(seq);
  subnet.content_leaf = SampleHash(90 + static_cast<int>(seq));
  subnet.layout_leaf = SampleHash(160 + static_cast<int>(seq));
  for (int i = 0; i < accesses; ++i) {
    AccessRow access;
    access.layer = i;
    access.read_seq = seq - 1;
    access.base_seq = i == 1 ? seq - 2 : seq - 1;
    if (access.base_seq < -1) access.base_seq = -1;
    access.stage = i;
    if (i != 2) access.weights = SampleDigest(50 + i);
    if (i != 2) access.optimizer_state = SampleDigest(60 + i);
    if (i == 0) access.gradients = SampleDigest(70 + i);
    subnet.accesses.push_back(access);
  }
  subnet.activations = {{0, 0, SampleDigest(80)}, {1, 0, SampleDigest(81)}};
  subnet.activities = {{0, 0, Phase::kForward, 1000, 2500},
                       {0, 1, Phase::kBackward, 3000000000, 3000000001},
                       {2, 0, Phase::kUpdate, 5, 5}};
  return subnet;
}

inline std::vector<SubnetRow> SampleSubnets(int count, int accesses = 3) {
  std::vector<SubnetRow> subnets;
  for (int seq = 0; seq < count; ++seq) subnets.push_back(SampleSubnet(seq, accesses));
  return subnets;
}

/// A new record without subnets.
inline std::unique_ptr<RecordWriter> CreateSample(const std::filesystem::path& path,
                                                  bool overwrite = false,
                                                  int busy_timeout_ms = kBusyTimeoutMs) {
  const auto environment = SampleEnvironment();
  const auto layers = SampleLayers();
  auto writer =
      RecordWriter::Create(path, SampleRun(), environment, layers, overwrite, busy_timeout_ms);
  EXPECT_TRUE(writer) << (writer ? "" : writer.error().message);
  return writer ? *std::move(writer) : nullptr;
}

/// A complete record with `subnets` and one evaluation.
inline void WriteSample(const std::filesystem::path& path, const std::vector<SubnetRow>& subnets) {
  const auto writer = CreateSample(path);
  const std::vector<EvaluationRow> evaluations = {{0, {1, 2}, 90, 100}};
  ASSERT_TRUE(writer->WriteSubnets(subnets));
  ASSERT_TRUE(writer->Close(RunStatus::kComplete, "", evaluations));
}

/// Runs SQL with all of SQLite's guards off, as somebody who tampers would.
inline void Tamper(const std::filesystem::path& path, const std::string& sql) {
  SQLite::Database database(path.string(), SQLite::OPEN_READWRITE);
  database.exec("PRAGMA ignore_check_constraints = ON");
  database.exec(sql);
}

/// Every subnet with everything it has; the error where there is one.
inline Result<std::vector<SubnetRow>> ReadSubnets(const RecordReader& reader) {
  std::vector<SubnetRow> subnets;
  RETURN_IF_ERROR(reader.ForEachSubnet({true, true, true}, [&](const SubnetRow& subnet) {
    subnets.push_back(subnet);
    return true;
  }));
  return subnets;
}

}  // namespace verbatim::test
