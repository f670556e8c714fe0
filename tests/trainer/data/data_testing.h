// Small generated files for the tests of trainer/data.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/status.h"
#include "tests/temporary_folder.h"

namespace verbatim {

using namespace std::string_literals;  // "\0…"s keeps its zero bytes

/// Each test works in a folder of its own.
class DataTest : public ::testing::Test {
 protected:
  /// Writes (or overwrites) a file of the folder and returns its path.
  std::filesystem::path Write(const std::string& name, std::string_view content) {
    std::ofstream file(folder_ / name, std::ios::binary | std::ios::trunc);
    file.write(content.data(), static_cast<std::streamsize>(content.size()));
    EXPECT_TRUE(file.flush().good());
    return folder_ / name;
  }

  const test::TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path();
};

/// `content` as one gzip member.
inline std::string Gzip(std::string_view content) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  EXPECT_EQ(deflateEnd(&stream), Z_OK);
  return out;
}

/// `result` is a kBadInput with a hint whose message holds `text` and, where given, `file`.
template <typename T>
void ExpectBadInput(const Result<T>& result, std::string_view text, std::string_view file = "") {
  ASSERT_FALSE(result.has_value()) << "no error; expected: " << text;
  EXPECT_EQ(result.error().kind, ErrorKind::kBadInput);
  EXPECT_NE(result.error().message.find(text), std::string::npos) << result.error().message;
  EXPECT_NE(result.error().message.find(file), std::string::npos) << result.error().message;
  EXPECT_FALSE(result.error().hint.empty());
}

}  // namespace verbatim
