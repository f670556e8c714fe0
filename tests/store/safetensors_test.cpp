#include "store/safetensors.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace verbatim {
namespace {

std::string Join(const EncodedTensors& encoded) {
  std::string bytes;
  for (const std::string_view piece : encoded.Pieces()) bytes += piece;
  return bytes;
}

/// A file with this header and as many bytes of tensors.
std::string FileOf(const std::string& header, std::size_t bytes) {
  std::string file(8, '\0');
  for (int i = 0; i < 8; ++i) file[i] = static_cast<char>(header.size() >> (8 * i));
  return file + header + std::string(bytes, 'x');
}

StoredTensors SampleTensors() {
  static const std::string floats(24, 'f');
  static const std::string step(8, 's');
  static const std::string flags(3, '\1');
  StoredTensors content;
  content.metadata = {{"layer", "block3.1"}, {"a", "\"quoted\""}};
  content.tensors = {{"weight", DType::kFloat32, {2, 3}, floats},
                     {"flags", DType::kBool, {3}, flags},
                     {"step", DType::kInt64, {}, step},
                     {"bias", DType::kFloat32, {0}, {}}};
  return content;
}

TEST(EncodeSafetensorsTest, TheBytesAreThese) {
  const std::string bytes = Join(EncodeSafetensors(SampleTensors()));
  std::string header = R"({"__metadata__":{"a":"\"quoted\"","layer":"block3.1"},)"
                       R"("step":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
                       R"("bias":{"dtype":"F32","shape":[0],"data_offsets":[8,8]},)"
                       R"("weight":{"dtype":"F32","shape":[2,3],"data_offsets":[8,32]},)"
                       R"("flags":{"dtype":"BOOL","shape":[3],"data_offsets":[32,35]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string expected = FileOf(header, 0);
  expected += std::string(8, 's') + std::string(24, 'f') + std::string(3, '\1');
  EXPECT_EQ(bytes, expected);
  EXPECT_EQ(EncodeSafetensors(SampleTensors()).bytes(), expected.size());
}

TEST(EncodeSafetensorsTest, TheOrderInMemoryDoesNotShow) {
  StoredTensors content = SampleTensors();
  const std::string bytes = Join(EncodeSafetensors(content));
  std::swap(content.tensors[0], content.tensors[3]);
  std::swap(content.tensors[1], content.tensors[2]);
  EXPECT_EQ(Join(EncodeSafetensors(content)), bytes);
}

TEST(EncodeSafetensorsTest, NoTensorsGiveAFileToo) {
  const std::string bytes = Join(EncodeSafetensors({}));
  EXPECT_EQ(bytes, FileOf("{}      ", 0));
  EXPECT_TRUE(ParseSafetensors(bytes, "a").value().tensors.empty());
}

TEST(ParseSafetensorsTest, WhatWasWrittenIsRead) {
  const std::string bytes = Join(EncodeSafetensors(SampleTensors()));
  const auto read = ParseSafetensors(bytes, "a");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  const StoredTensors sample = SampleTensors();
  EXPECT_EQ(read->metadata, sample.metadata);
  ASSERT_EQ(read->tensors.size(), sample.tensors.size());
  for (const StoredTensor& tensor : sample.tensors) {
    const StoredTensor* const found = read->Find(tensor.name);
    ASSERT_NE(found, nullptr) << tensor.name;
    EXPECT_EQ(found->dtype, tensor.dtype);
    EXPECT_EQ(found->shape, tensor.shape);
    EXPECT_EQ(found->data, tensor.data);
  }
  EXPECT_EQ(read->Find("none"), nullptr);
}

TEST(ParseSafetensorsTest, EveryTypeIsRead) {
  const std::pair<const char*, DType> types[] = {
      {"F64", DType::kFloat64},   {"F32", DType::kFloat32}, {"F16", DType::kFloat16},
      {"BF16", DType::kBFloat16}, {"I64", DType::kInt64},   {"I32", DType::kInt32},
      {"U8", DType::kUInt8},      {"BOOL", DType::kBool}};
  for (const auto& [name, dtype] : types) {
    const std::string bytes =
        FileOf(R"({"t":{"dtype":")" + std::string(name) + R"(","shape":[2],"data_offsets":[0,)" +
                   std::to_string(2 * SizeOf(dtype)) + "]}}",
               2 * SizeOf(dtype));
    const auto read = ParseSafetensors(bytes, "a");
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(read->tensors[0].dtype, dtype);
  }
}

TEST(ParseSafetensorsTest, TruncationAtEveryLengthIsRefused) {
  const std::string bytes = Join(EncodeSafetensors(SampleTensors()));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto read = ParseSafetensors(std::string_view(bytes).substr(0, size), "cut.safetensors");
    ASSERT_FALSE(read.has_value()) << size << " bytes";
    EXPECT_EQ(read.error().kind, ErrorKind::kBadInput);
    EXPECT_EQ(read.error().message.rfind("cut.safetensors is damaged", 0), 0u);
  }
  EXPECT_FALSE(ParseSafetensors(bytes + "x", "long").has_value());
}

struct Bad {
  const char* header;
  std::size_t bytes;
  const char* says;
};

TEST(ParseSafetensorsTest, HeadersThatLieAreRefused) {
  const Bad cases[] = {
      {"", 0, "no JSON object"},
      {"[]", 0, "no JSON object"},
      {" {}", 0, "no JSON object"},
      {"{", 0, "header:1:"},
      {R"({"a":{},"a":{}})", 0, "given twice"},
      {R"({"__metadata__":1})", 0, "__metadata__"},
      {R"({"__metadata__":{"a":1}})", 0, "__metadata__"},
      {R"({"a":1})", 0, "exactly the fields"},
      {R"({"a":{"dtype":"F32","shape":[1]}})", 4, "exactly the fields"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"b":1}})", 4, "exactly the fields"},
      {R"({"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})", 4, "type"},
      {R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,4]}})", 4, "type"},
      {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "shape"},
      {R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4, "shape"},
      {R"({"a":{"dtype":"F32","shape":1,"data_offsets":[0,4]}})", 4, "shape"},
      {R"({"a":{"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,4]}})", 4, "shape"},
      {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}})", 4, "fit"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, "fit"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, "data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})", 4, "data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 4, "data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, "instead of 0"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 8, "8 bytes of tensors"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
       R"("b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}})",
       7, "begins at byte 3 instead of 4"}};
  for (const Bad& bad : cases) {
    const std::string bytes = FileOf(bad.header, bad.bytes);
    const auto read = ParseSafetensors(bytes, "a");
    ASSERT_FALSE(read.has_value()) << bad.header;
    EXPECT_NE(read.error().message.find(bad.says), std::string::npos) << read.error().message;
  }
}

TEST(ParseSafetensorsTest, AHeaderLongerThanTheFileIsRefused) {
  std::string bytes = FileOf("{}", 0);
  for (int i = 0; i < 8; ++i) bytes[i] = '\xff';
  EXPECT_FALSE(ParseSafetensors(bytes, "a").has_value());
}

TEST(ParseSafetensorsTest, ChangedBytesAreReadOrRefused) {
  const std::string good = Join(EncodeSafetensors(SampleTensors()));
  for (std::size_t at = 0; at + 35 < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      const auto read = ParseSafetensors(bytes, "a");
      if (!read) continue;
      for (const StoredTensor& tensor : read->tensors) {
        EXPECT_GE(tensor.data.data(), bytes.data());
        EXPECT_LE(tensor.data.data() + tensor.data.size(), bytes.data() + bytes.size());
      }
    }
  }
}

}  // namespace
}  // namespace verbatim
