// One rank's part of a made-up run, for the tests of part files.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "recorder/part_file.h"

namespace verbatim::test {

inline PartSession SampleSession(std::int32_t rank = 1, std::int32_t ranks = 3) {
  return {SpecDigest("{}"), rank, ranks, "node-7", "2026-01-31T12:00:00Z"};
}

inline Digest PartDigest(int first) {
  Digest digest;
  for (auto& byte : digest.bytes) byte = static_cast<std::uint8_t>(first++);
  return digest;
}

/// With every kind of row.
inline RankReport SampleReport(std::int64_t seq) {
  const int number = static_cast<int>(seq);
  RankReport report;
  report.loss = 1.5f + static_cast<float>(seq);
  report.accesses = {{2, seq - 1, seq - 1, 1, PartDigest(number), PartDigest(number + 1), {}},
                     {5, -1, -1, 1, PartDigest(number + 2), {}, PartDigest(number + 3)}};
  report.activations = {{0, 1, PartDigest(number + 4)}, {1, 1, PartDigest(number + 5)}};
  report.activity = {{1, 0, Phase::kForward, 1000 * seq, 1000 * seq + 7},
                     {1, 0, Phase::kBackward, 1000 * seq + 9, 1000 * seq + 70}};
  report.versions_moved = seq;
  report.bytes_moved = 100 * seq;
  return report;
}

inline std::string SampleFrame(std::int64_t seq) {
  return EncodeFrame(seq, EncodeReport(seq, SampleReport(seq)));
}

/// A file of one session and the subnets 0, 1, … below `count`.
inline std::string SamplePartFile(int count) {
  std::string bytes = EncodePartHead() + EncodeFrame(SampleSession());
  for (int seq = 0; seq < count; ++seq) bytes += SampleFrame(seq);
  return bytes;
}

inline std::string BytesOf(const std::filesystem::path& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

inline std::filesystem::path WriteBytes(const std::filesystem::path& path,
                                        const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

}  // namespace verbatim::test
