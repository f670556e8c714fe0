// Proves that the C interface records what it is given, says in words what is wrong with what it is
// given, and never ends the program.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <csignal>
#include <cstring>
#include <numeric>
#include <thread>

#include "recorder/c/verbatim_recorder.h"
#include "recorder/digest.h"
#include "recorder/step_spec.h"
#include "tests/recorder/dtype_digests.h"
#include "tests/store/sample_record.h"

namespace verbatim {
namespace {

using namespace test;  // NOLINT
namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

verbatim_digest CDigest(int first) {
  verbatim_digest digest;
  std::memcpy(digest.bytes, SampleDigest(first).bytes.data(), sizeof digest.bytes);
  return digest;
}

Digest FromC(const verbatim_digest& digest) {
  Digest copy;
  std::memcpy(copy.bytes.data(), digest.bytes, sizeof digest.bytes);
  return copy;
}

// What a C program has at hand: a run, three layers and one step, each of which a test may spoil.
class RecorderC : public ::testing::Test {
 protected:
  RecorderC() {
    verbatim_run_init(&run_, sizeof run_);
    run_.name = "c";
    run_.has_seed = 1;
    run_.seed = 18446744073709551615u;
    run_.record_level = "full";
    run_.gradients = 1;
    run_.settings_json = R"({"optimizer": "sgd", "nesterov": false})";
    run_.environment_json = R"({"torch": "2.11", "threads": 2})";
    run_.command_line = "./trainer";
    layers_[0].name = "weight";
    layers_[0].dtype = VERBATIM_FLOAT32;
    layers_[0].shape = kShape.data();
    layers_[0].rank = 2;
    layers_[0].also = kAlso.data();
    layers_[0].also_count = 1;
    layers_[0].initial = CDigest(1);
    layers_[1].kind = VERBATIM_BUFFER;
    layers_[1].name = "count";
    layers_[1].dtype = VERBATIM_INT64;
    layers_[1].placement = "replica";
    layers_[2].kind = VERBATIM_CAPTURED;
    layers_[2].name = "output";
    verbatim_step_init(&step_, sizeof step_);
    step_.step = 4;
    step_.has_loss = 1;
    step_.loss = 0.25f;
    step_.batch = &batch_;
    step_.random_state = &random_;
    step_.settings_json = R"({"lr": 0.10})";
    step_.layers = digests_.data();
    step_.layer_count = digests_.size();
    step_.captured = captured_.data();
    step_.captured_count = captured_.size();
  }
  ~RecorderC() override { verbatim_recorder_free(recorder_); }

  int Open(std::size_t layer_count = 3) {
    return verbatim_recorder_open(path_.c_str(), &run_, layers_.data(), layer_count, &recorder_);
  }
  int Record(std::int64_t step) {
    step_.step = step;
    return verbatim_recorder_record(recorder_, &step_);
  }
  void Refused(int code, const char* problem) {
    EXPECT_EQ(code, VERBATIM_USAGE) << problem;
    EXPECT_THAT(verbatim_message(), HasSubstr(problem));
  }
  std::vector<SubnetRow> Read() {
    const auto reader = RecordReader::Open(path_);
    EXPECT_TRUE(reader) << (reader ? "" : reader.error().message);
    return *ReadSubnets(**reader);
  }

  static constexpr std::array<std::int64_t, 2> kShape = {2, 3};
  static constexpr std::array<const char*, 1> kAlso = {"tied"};
  TemporaryFolder folder_;
  fs::path path_ = folder_ / "run.db";
  verbatim_run run_;
  std::array<verbatim_layer, 3> layers_{};
  verbatim_step step_;
  std::array<verbatim_layer_digests, 2> digests_ = {
      {{0, 7, CDigest(10), CDigest(20), CDigest(30)}, {1, 1, CDigest(40), {}, {}}}};
  std::array<verbatim_captured, 1> captured_ = {{{2, 0, CDigest(50)}}};
  verbatim_digest batch_ = CDigest(60), random_ = CDigest(70);
  verbatim_recorder* recorder_ = nullptr;
};

TEST_F(RecorderC, WhatIsRecordedIsReadBack) {
  const std::array<verbatim_digest, 2> parts = {CDigest(80), CDigest(90)};
  const std::array<std::int32_t, 2> outside = {0, 1};
  step_.parts = parts.data();
  step_.part_count = parts.size();
  step_.outside = outside.data();
  step_.outside_count = outside.size();
  ASSERT_EQ(Open(), VERBATIM_OK) << verbatim_message();
  ASSERT_EQ(Record(4), VERBATIM_OK) << verbatim_message();
  ASSERT_EQ(verbatim_recorder_close(recorder_, VERBATIM_INTERRUPTED, "stopped"), VERBATIM_OK);
  const auto reader = *RecordReader::Open(path_);
  const RunInfo info = *reader->Run();
  EXPECT_EQ(info.tool_version, verbatim_version());
  EXPECT_EQ(info.command_line, "./trainer");
  EXPECT_EQ(info.spec_folder, fs::current_path());
  EXPECT_EQ(info.status, RunStatus::kInterrupted);
  EXPECT_EQ(info.status_detail, "stopped");
  const StepSpec spec{"c",  18446744073709551615u,
                      1,    0,
                      1,    true,
                      true, {{"nesterov", "false"}, {"optimizer", "\"sgd\""}}};
  EXPECT_EQ(ParseStepSpec(info.spec_json, "spec"), spec);
  EXPECT_EQ(reader->Environment(),
            (std::vector<EnvironmentRow>{{"threads", "2"}, {"torch", "2.11"}}));
  EXPECT_EQ(reader->Layers(),
            (std::vector<LayerRow>{
                {0, "weight", 0, 0, "parameter float32[2,3] also tied", true, SampleDigest(1)},
                {1, "count", 1, 0, "buffer int64[] (replica)", true, {}},
                {2, "output", 2, 0, "captured", false, {}}}));
  const auto subnets = Read();
  ASSERT_EQ(subnets.size(), 1u);
  const SubnetRow& subnet = subnets[0];
  EXPECT_EQ(subnet.loss_bits, std::bit_cast<std::uint32_t>(0.25f));
  EXPECT_EQ(subnet.batch_digest, SampleDigest(60));
  StepFacts facts{
      4, SampleDigest(70), {{"lr", "0.1"}}, {0, 1}, {SampleDigest(80), SampleDigest(90)}};
  EXPECT_EQ(subnet.step, facts);
  const AccessRow weight{0, -1, -1, 0, SampleDigest(10), SampleDigest(20), SampleDigest(30)};
  const AccessRow count{1, -1, -1, 0, SampleDigest(40), {}, {}};
  EXPECT_THAT(subnet.accesses, ElementsAre(weight, count));
  EXPECT_THAT(subnet.activations, ElementsAre(ActivationRow{0, 2, SampleDigest(50)}));
}

TEST_F(RecorderC, DigestsOfEveryElementTypeArePinned) {
  std::array<std::uint8_t, 6 * 16> bytes;
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
  const std::array<std::int64_t, 2> shape = {2, 3};
  for (const DTypeDigest& c : kDTypeDigests) {
    const auto dtype = static_cast<std::int32_t>(*DTypeFromName(c.dtype));
    const verbatim_tensor tensor{c.dtype, bytes.data(), 6 * c.element_bytes,
                                 dtype,   shape.data(), 2};
    verbatim_digest digest;
    ASSERT_EQ(verbatim_digest_tensor(&tensor, &digest), VERBATIM_OK) << c.dtype;
    EXPECT_EQ(ToHex(FromC(digest)), c.hex) << c.dtype;
  }
}

TEST_F(RecorderC, DigestsAreThoseOfTheFormat) {
  const std::array<float, 6> data = {1, 2, 3, 4, 5, 6};
  const float scalar = 0.5f;
  const std::array<verbatim_tensor, 2> tensors = {
      {{"weight", data.data(), sizeof data, VERBATIM_FLOAT32, kShape.data(), 2},
       {"bias", &scalar, sizeof scalar, VERBATIM_FLOAT32, nullptr, 0}}};
  verbatim_digest digest;
  ASSERT_EQ(verbatim_digest_tensor(tensors.data(), &digest), VERBATIM_OK);
  EXPECT_EQ(ToHex(FromC(digest)), "00b9fc53f768a0c78b6e0c1057622687");
  ASSERT_EQ(verbatim_digest_tensors(tensors.data(), 2, &digest), VERBATIM_OK);
  EXPECT_EQ(ToHex(FromC(digest)), "17b23826e04c246f505078ed3498088c");
  ASSERT_EQ(verbatim_digest_tensors(nullptr, 0, &digest), VERBATIM_OK);
  EXPECT_EQ(ToHex(FromC(digest)), "99aa06d3014798d86001c324468d497f");
  ASSERT_EQ(Open(), VERBATIM_OK);
  ASSERT_EQ(verbatim_recorder_digest(recorder_, 0, data.data(), sizeof data, &digest), VERBATIM_OK);
  EXPECT_EQ(ToHex(FromC(digest)), "00b9fc53f768a0c78b6e0c1057622687");
}

TEST_F(RecorderC, EveryDtypeHasItsNumber) {
  const std::array<std::uint8_t, 16> data{};
  for (const DTypeFacts& facts : kDTypes) {
    const verbatim_tensor tensor = {
        "", data.data(), facts.element_bytes, static_cast<std::int32_t>(facts.dtype), nullptr, 0};
    verbatim_digest digest;
    ASSERT_EQ(verbatim_digest_tensor(&tensor, &digest), VERBATIM_OK) << facts.name;
    EXPECT_EQ(FromC(digest), DigestTensor({facts.dtype, {}, data.data()})) << facts.name;
  }
  EXPECT_EQ(VERBATIM_FLOAT8_E8M0FNU, static_cast<int>(std::size(kDTypes)));
}

TEST_F(RecorderC, ATensorThatIsNoneIsRefused) {
  const float data[2] = {};
  const std::int64_t shape = 2, negative = -1;
  const verbatim_tensor sound = {"x", data, sizeof data, VERBATIM_FLOAT32, &shape, 1};
  verbatim_digest digest;
  ASSERT_EQ(verbatim_digest_tensor(&sound, &digest), VERBATIM_OK);
  const auto refused = [&](const char* problem, auto change) {
    verbatim_tensor tensor = sound;
    change(tensor);
    Refused(verbatim_digest_tensor(&tensor, &digest), problem);
    Refused(verbatim_digest_tensors(&tensor, 1, &digest), problem);
  };
  refused("'x' has 7 bytes, but its dtype and shape ask for 8", [](auto& t) { t.bytes = 7; });
  refused("dtype 22 or a dimension", [](auto& t) { t.dtype = 22; });
  refused("dtype -1 or a dimension", [](auto& t) { t.dtype = -1; });
  refused("dtype 1 or a dimension", [&](auto& t) { t.shape = &negative; });
  refused("a shape is null, but has 1 entries", [](auto& t) { t.shape = nullptr; });
  refused("'x' has 1000 dimensions", [](auto& t) { t.rank = 1000; });
  refused("'x' has no data", [](auto& t) { t.data = nullptr; });
  Refused(verbatim_digest_tensor(nullptr, &digest), "tensor is null");
  Refused(verbatim_digest_tensor(&sound, nullptr), "digest is null");
  Refused(verbatim_digest_tensors(nullptr, 1, &digest), "tensors is null");
}

TEST_F(RecorderC, ARunThatMakesNoSenseIsRefused) {
  const auto refused = [&](const char* problem, auto change) {
    const verbatim_run run = run_;
    const auto layers = layers_;
    change();
    Refused(Open(), problem);
    EXPECT_EQ(recorder_, nullptr);
    EXPECT_FALSE(fs::exists(path_));
    run_ = run;
    layers_ = layers;
  };
  refused("record level 'all'", [&] { run_.record_level = "all"; });
  refused("record level ''", [&] { run_.record_level = nullptr; });
  refused("every is 0", [&] { run_.every = 0; });
  refused("rank is 2 of 2", [&] { run_.rank = run_.world_size = 2; });
  refused("settings_json:1:", [&] { run_.settings_json = "{"; });
  refused("betas: expected", [&] { run_.settings_json = R"({"betas": [1]})"; });
  refused("environment_json:1:1: expected an object", [&] { run_.environment_json = "7"; });
  refused("verbatim_run has 100000 bytes", [&] { run_.struct_bytes = 100000; });
  refused("verbatim_run has 0 bytes", [&] { run_.struct_bytes = 0; });
  refused("layer 1 is of kind 9", [&] { layers_[1].kind = 9; });
  refused("layer 1 has no name", [&] { layers_[1].name = nullptr; });
  refused("'weight': its dtype (number 99)", [&] { layers_[0].dtype = 99; });
  refused("a shape is null", [&] { layers_[0].shape = nullptr; });
  refused("also is null", [&] { layers_[0].also = nullptr; });
  refused("two layers are called 'weight'", [&] { layers_[1].name = "weight"; });
  Refused(verbatim_recorder_open(nullptr, &run_, layers_.data(), 3, &recorder_), "path is null");
  Refused(verbatim_recorder_open("x", nullptr, layers_.data(), 3, &recorder_), "run is null");
  Refused(verbatim_recorder_open("x", &run_, nullptr, 3, &recorder_), "layers is null");
  Refused(verbatim_recorder_open("x", &run_, layers_.data(), 3, nullptr), "recorder is null");
  Refused(Open(std::size_t{1} << 40), "layers, more than");
}

// A caller that was built before fields were added has shorter structs.
TEST_F(RecorderC, FieldsThatACallerDoesNotHaveAreAsTheyWere) {
  run_.struct_bytes = offsetof(verbatim_run, environment_json);
  step_.struct_bytes = offsetof(verbatim_step, captured);
  ASSERT_EQ(Open(), VERBATIM_OK) << verbatim_message();
  ASSERT_EQ(Record(1), VERBATIM_OK) << verbatim_message();
  ASSERT_EQ(verbatim_recorder_close(recorder_, VERBATIM_COMPLETE, nullptr), VERBATIM_OK);
  EXPECT_EQ((*RecordReader::Open(path_))->Environment(), std::vector<EnvironmentRow>{});
  EXPECT_EQ((*RecordReader::Open(path_))->Run()->device, "cpu");
  EXPECT_TRUE(Read().at(0).activations.empty());
}

TEST_F(RecorderC, AStepThatDoesNotFitIsRefusedAndTheRunGoesOn) {
  ASSERT_EQ(Open(), VERBATIM_OK);
  ASSERT_EQ(Record(4), VERBATIM_OK) << verbatim_message();
  const auto refused = [&](const char* problem, auto change) {
    const verbatim_step step = step_;
    const auto digests = digests_;
    const auto captured = captured_;
    step_.step = 5;
    change();
    Refused(verbatim_recorder_record(recorder_, &step_), problem);
    step_ = step;
    digests_ = digests;
    captured_ = captured;
  };
  refused("step 4 comes after step 4", [&] { step_.step = 4; });
  refused("lacks layer 1 ('count')", [&] { step_.layer_count = 1; });
  refused("layers is null, but has 2", [&] { step_.layers = nullptr; });
  refused("lacks layer 0 ('weight')", [&] { digests_[0].layer = 77; });
  refused("'weight' lacks a digest of its weights", [&] { digests_[0].present = 6; });
  refused("has digests 8", [&] { digests_[0].present = 8; });
  refused("'count' has a digest of optimizer state", [&] { digests_[1].present = 3; });
  refused("outside is null", [&] { step_.outside_count = 2; });
  refused("parts is null", [&] { step_.part_count = 2; });
  refused("captured is null", [&] { step_.captured = nullptr; });
  refused("captured layer 1", [&] { captured_[0].layer = 1; });
  refused("settings_json:1:", [&] { step_.settings_json = "lr = 0.1"; });
  refused("verbatim_step has 1 bytes", [&] { step_.struct_bytes = 1; });
  Refused(verbatim_recorder_record(recorder_, nullptr), "verbatim_step is null");
  Refused(verbatim_recorder_record(nullptr, &step_), "recorder is null");
  verbatim_digest digest;
  const float data[7] = {};
  Refused(verbatim_recorder_digest(recorder_, 0, data, sizeof data, &digest),
          "layer 'weight' has 28 bytes, of 24 when the recorder was opened");
  Refused(verbatim_recorder_digest(recorder_, 3, data, 24, &digest), "there is no layer 3");
  Refused(verbatim_recorder_digest(recorder_, -1, data, 24, &digest), "there is no layer -1");
  Refused(verbatim_recorder_digest(recorder_, 2, data, 24, &digest), "'output' is captured");
  Refused(verbatim_recorder_digest(recorder_, 0, nullptr, 24, &digest), "data is null");
  ASSERT_EQ(Record(5), VERBATIM_OK) << verbatim_message();
  ASSERT_EQ(verbatim_recorder_close(recorder_, VERBATIM_COMPLETE, nullptr), VERBATIM_OK);
  EXPECT_EQ(Read().size(), 2u);
}

TEST_F(RecorderC, AClosedRecorderOnlyRefuses) {
  ASSERT_EQ(Open(), VERBATIM_OK);
  Refused(verbatim_recorder_close(recorder_, 3, ""), "cannot end with 3");
  ASSERT_EQ(verbatim_recorder_close(recorder_, VERBATIM_ERROR, "NaN"), VERBATIM_OK);
  Refused(Record(4), "the recorder is closed");
  Refused(verbatim_recorder_close(recorder_, VERBATIM_COMPLETE, ""), "the recorder is closed");
  Refused(verbatim_recorder_close(nullptr, VERBATIM_COMPLETE, ""), "recorder is null");
  verbatim_recorder_free(nullptr);
}

TEST_F(RecorderC, OneFileHasOneRecorder) {
  ASSERT_EQ(Open(), VERBATIM_OK);
  verbatim_recorder* second = nullptr;
  Refused(verbatim_recorder_open(path_.c_str(), &run_, layers_.data(), 3, &second), "exists");
  run_.overwrite = 1;
  EXPECT_EQ(verbatim_recorder_open(path_.c_str(), &run_, layers_.data(), 3, &second),
            VERBATIM_FAILED);
  EXPECT_THAT(verbatim_message(), HasSubstr("in use"));
  EXPECT_STRNE(verbatim_hint(), "");
  EXPECT_EQ(second, nullptr);
}

TEST_F(RecorderC, FreedWithoutCloseItIsStillRunning) {
  ASSERT_EQ(Open(), VERBATIM_OK);
  ASSERT_EQ(Record(4), VERBATIM_OK);
  verbatim_recorder_free(std::exchange(recorder_, nullptr));
  EXPECT_EQ((*RecordReader::Open(path_))->Run()->status, RunStatus::kRunning);
  EXPECT_EQ(Read().size(), 1u);
}

TEST_F(RecorderC, AChildOfForkIsRefused) {
  ASSERT_EQ(Open(), VERBATIM_OK);
  const pid_t child = fork();
  if (child == 0) {
    const bool is_refused =
        Record(4) == VERBATIM_USAGE && std::strstr(verbatim_message(), "forked") != nullptr &&
        verbatim_recorder_close(recorder_, VERBATIM_COMPLETE, "") == VERBATIM_USAGE;
    verbatim_recorder_free(recorder_);
    _exit(is_refused ? 0 : 1);
  }
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0) << state;
  EXPECT_EQ(Record(4), VERBATIM_OK) << verbatim_message();
  EXPECT_EQ(verbatim_recorder_close(recorder_, VERBATIM_COMPLETE, ""), VERBATIM_OK);
}

TEST_F(RecorderC, AReadOnlyFolderIsAnError) {
  fs::permissions(folder_.path(), fs::perms(0555));
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && setuid(65534) != 0) _exit(100);
    _exit(Open());
  }
  int state = 0;
  waitpid(child, &state, 0);
  fs::permissions(folder_.path(), fs::perms(0755));
  EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == VERBATIM_FAILED) << state;
  path_ = folder_ / "none/run.db";
  Refused(Open(), "none");
}

// A limit on the size of files stands for a full disk.
TEST_F(RecorderC, AFullDiskIsAnErrorAndWhatWasCommittedStays) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 20, 1 << 20};
    if (Open() != VERBATIM_OK || setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(100);
    int code = VERBATIM_OK;
    std::int64_t step = 0;
    while (code == VERBATIM_OK && step < 100'000) code = Record(++step);
    if (code != VERBATIM_FAILED || Record(++step) != VERBATIM_FAILED) _exit(101);
    _exit(verbatim_recorder_close(recorder_, VERBATIM_COMPLETE, ""));
  }
  int state = 0;
  waitpid(child, &state, 0);
  EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == VERBATIM_FAILED) << state;
  EXPECT_GT(Read().size(), 100u);
}

TEST_F(RecorderC, ThreadsMayShareARecorderAndHaveTheirOwnMessages) {
  ASSERT_EQ(Open(), VERBATIM_OK);
  std::atomic<std::int64_t> next = 0;
  std::atomic<int> recorded = 0;
  const auto work = [&] {
    verbatim_step step = step_;
    for (int i = 0; i < 50; ++i) {
      step.step = ++next;
      const int code = verbatim_recorder_record(recorder_, &step);
      if (code == VERBATIM_OK) {
        ++recorded;
      } else {
        EXPECT_THAT(verbatim_message(), HasSubstr("comes after step"));
      }
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  std::thread([] { EXPECT_STREQ(verbatim_message(), ""); }).join();
  ASSERT_EQ(verbatim_recorder_close(recorder_, VERBATIM_COMPLETE, ""), VERBATIM_OK);
  EXPECT_EQ(std::ssize(Read()), recorded);
}

}  // namespace
}  // namespace verbatim
