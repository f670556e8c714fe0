#include "store/layer_metadata.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace verbatim {
namespace {

LayerMetadata Sample() {
  LayerMetadata metadata;
  metadata.layer = "block3.1";
  metadata.version = 12;
  metadata.parameters = {"weight", "bias"};
  metadata.buffers = {"mean"};
  metadata.optimizer = {"exp_avg", "exp_avg_sq"};
  metadata.has_step = true;
  metadata.earlier = {-1, 4};
  return metadata;
}

/// A file with those tensors, each of one byte.
StoredTensors FileOf(const LayerMetadata& metadata) {
  StoredTensors file;
  file.metadata = EncodeLayerMetadata(metadata);
  for (std::string& name : TensorNames(metadata)) {
    file.tensors.push_back({std::move(name), DType::kUInt8, {1}, "x"});
  }
  return file;
}

TEST(LayerMetadataTest, TensorsAreNamedInThisOrder) {
  EXPECT_EQ(
      TensorNames(Sample()),
      (std::vector<std::string>{"weight", "bias", "mean", "weight.exp_avg", "weight.exp_avg_sq",
                                "bias.exp_avg", "bias.exp_avg_sq", "step", "earlier.0.weight",
                                "earlier.0.bias", "earlier.1.weight", "earlier.1.bias"}));
}

TEST(LayerMetadataTest, TheTextsAreThese) {
  const std::map<std::string, std::string> expected{{"format", "verbatim.layer.1"},
                                                    {"layer", "block3.1"},
                                                    {"version", "12"},
                                                    {"parameters", "weight,bias"},
                                                    {"buffers", "mean"},
                                                    {"optimizer", "exp_avg,exp_avg_sq"},
                                                    {"earlier", "-1,4"}};
  EXPECT_EQ(EncodeLayerMetadata(Sample()), expected);
}

TEST(LayerMetadataTest, WhatWasWrittenIsRead) {
  LayerMetadata frozen;
  frozen.layer = "stem";
  frozen.parameters = {"weight"};
  LayerMetadata sgd = Sample();
  sgd.optimizer = {};
  sgd.earlier = {};
  for (const LayerMetadata& metadata : {Sample(), frozen, sgd}) {
    const auto read = ReadLayerMetadata(FileOf(metadata), "a");
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(*read, metadata);
  }
}

TEST(LayerMetadataTest, OtherTextsAreRefused) {
  const std::pair<const char*, const char*> changes[] = {{"format", "verbatim.layer.2"},
                                                         {"version", "012"},
                                                         {"version", "x"},
                                                         {"version", "-2"},
                                                         {"version", ""},
                                                         {"version", "99999999999999999999"},
                                                         {"parameters", "weight,bias,"},
                                                         {"parameters", "weight"},
                                                         {"earlier", ""},
                                                         {"earlier", "4,x"},
                                                         {"another", "text"}};
  for (const auto& [key, text] : changes) {
    StoredTensors file = FileOf(Sample());
    file.metadata[key] = text;
    const auto read = ReadLayerMetadata(file, "file.safetensors");
    ASSERT_FALSE(read.has_value()) << key << ": " << text;
    EXPECT_EQ(read.error().kind, ErrorKind::kBadInput);
    EXPECT_EQ(read.error().message.rfind("file.safetensors is no checkpoint file", 0), 0u);
  }
  StoredTensors file = FileOf(Sample());
  file.metadata.erase("layer");
  EXPECT_FALSE(ReadLayerMetadata(file, "a").has_value());
}

TEST(LayerMetadataTest, TensorsThatAreNotNamedOrMissingAreRefused) {
  StoredTensors more = FileOf(Sample());
  more.tensors.push_back({"other", DType::kUInt8, {1}, "x"});
  EXPECT_FALSE(ReadLayerMetadata(more, "a").has_value());
  StoredTensors fewer = FileOf(Sample());
  fewer.tensors.pop_back();
  EXPECT_FALSE(ReadLayerMetadata(fewer, "a").has_value());
  StoredTensors renamed = FileOf(Sample());
  renamed.tensors.front().name = "other";
  EXPECT_FALSE(ReadLayerMetadata(renamed, "a").has_value());
}

}  // namespace
}  // namespace verbatim
