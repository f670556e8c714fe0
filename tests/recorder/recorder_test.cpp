// Proves that the recorder loses no row, holds back a producer that is too fast, never blocks one
// for ever once its writer has failed, and commits in time.
#include "recorder/recorder.h"

#include <gmock/gmock.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>

#include "tests/store/sample_record.h"

namespace verbatim {
namespace {

using namespace test;  // NOLINT
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kSoon = std::chrono::milliseconds(50);
constexpr auto kAtMost = std::chrono::seconds(60);
constexpr std::int64_t kNever = 3'600'000;  // milliseconds

// What a test sees of its writer, which the recorder owns.
struct WriterLog {
  // Waits until that many batches were begun; false after kAtMost.
  bool WaitForBatches(std::size_t count) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, kAtMost, [&] { return batch_sizes.size() >= count; });
  }
  void Release() {
    const std::scoped_lock lock(mutex);
    is_held = false;
    changed.notify_all();
  }

  std::mutex mutex;
  std::condition_variable changed;
  bool is_held = false;           // WriteSubnets waits for Release
  std::size_t fail_at = 1000000;  // number of the batch that fails
  bool fail_evaluations = false;
  bool fail_checkpoints = false;
  /// Cut, how many are kept, and how many subnets were committed before it.
  std::vector<std::tuple<std::int64_t, std::int64_t, std::size_t>> checkpoints;
  std::vector<std::size_t> batch_sizes;
  std::set<std::int64_t> seqs;
  std::vector<std::string> ends;
};

class FakeWriter final : public RecordWriter {
 public:
  explicit FakeWriter(WriterLog& log) : log_(log) {}

  Status WriteSubnets(std::span<const SubnetRow> subnets) override {
    std::unique_lock lock(log_.mutex);
    log_.batch_sizes.push_back(subnets.size());
    log_.changed.notify_all();
    log_.changed.wait(lock, [&] { return !log_.is_held; });
    if (log_.batch_sizes.size() >= log_.fail_at) return Failed("the disk is full", "free space");
    for (const SubnetRow& subnet : subnets) log_.seqs.insert(subnet.seq);
    return {};
  }
  Status WriteCheckpoint(const CheckpointRow& row, std::int64_t keep) override {
    const std::scoped_lock lock(log_.mutex);
    if (log_.fail_checkpoints) return Failed("no checkpoints");
    log_.checkpoints.push_back({row.cut, keep, log_.seqs.size()});
    return {};
  }
  Head CurrentHead() const override {
    Head head;
    head.subnets = std::ssize(log_.seqs);
    if (!log_.ends.empty()) head.end.emplace();
    return head;
  }
  Status Close(RunStatus status, const std::string& detail,
               std::span<const EvaluationRow> evaluations) override {
    if (log_.fail_evaluations && !evaluations.empty()) return Failed("no evaluations");
    log_.ends.push_back(fmt::format("{}: {}", ToString(status), detail));
    return {};
  }

 private:
  WriterLog& log_;
};

std::unique_ptr<Recorder> Start(WriterLog& log, const RecorderOptions& options) {
  return Recorder::Start(std::make_unique<FakeWriter>(log), options);
}

Status Record(Observer& observer, std::int64_t seq) {
  const SubnetRow row = SampleSubnet(seq);
  observer.OnSubnetStarted(seq, row.choices, row.samples);
  observer.OnBatch(seq, row.batch_digest);
  for (const AccessRow& access : row.accesses) observer.OnAccess(seq, access);
  for (const ActivationRow& activation : row.activations) observer.OnActivation(seq, activation);
  for (const ActivityRow& activity : row.activities) observer.OnActivity(seq, activity);
  observer.OnLoss(seq, 0.5f);
  return observer.OnSubnetFinished(seq);
}

TEST(RecorderTest, CommitsWholeBatchesAndTheRestAtClose) {
  WriterLog log;
  const auto recorder =
      Start(log, {.queue_capacity = 100, .batch_max = 4, .commit_interval_ms = kNever});
  for (int seq = 0; seq < 4; ++seq) ASSERT_TRUE(Record(*recorder, seq));
  ASSERT_TRUE(log.WaitForBatches(1));
  for (int seq = 4; seq < 7; ++seq) ASSERT_TRUE(Record(*recorder, seq));
  ASSERT_TRUE(recorder->Close(RunStatus::kInterrupted, "why", {}));
  EXPECT_THAT(log.batch_sizes, ElementsAre(4, 3));
  EXPECT_THAT(log.seqs, ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_THAT(log.ends, ElementsAre("interrupted: why"));
}

TEST(RecorderTest, CommitsOneSubnetWhenItsTimeIsUp) {
  WriterLog log;
  const auto recorder = Start(log, {.commit_interval_ms = 1});
  ASSERT_TRUE(Record(*recorder, 0));
  EXPECT_TRUE(log.WaitForBatches(1));
  ASSERT_TRUE(Record(*recorder, 1));
  EXPECT_TRUE(log.WaitForBatches(2));
}

TEST(RecorderTest, QueueSmallerThanABatchDoesNotWaitForTheClock) {
  WriterLog log;
  const auto recorder =
      Start(log, {.queue_capacity = 2, .batch_max = 64, .commit_interval_ms = kNever});
  for (int seq = 0; seq < 10; ++seq) ASSERT_TRUE(Record(*recorder, seq));
  ASSERT_TRUE(recorder->Close(RunStatus::kComplete, "", {}));
  EXPECT_EQ(log.seqs.size(), 10u);
}

TEST(RecorderTest, FullQueueHoldsTheProducerBack) {
  WriterLog log;
  log.is_held = true;
  const auto recorder = Start(log, {.queue_capacity = 2, .batch_max = 1, .commit_interval_ms = 0});
  ASSERT_TRUE(Record(*recorder, 0));
  ASSERT_TRUE(log.WaitForBatches(1));  // subnet 0 is with the writer
  ASSERT_TRUE(Record(*recorder, 1));
  ASSERT_TRUE(Record(*recorder, 2));
  auto blocked = std::async(std::launch::async, [&] { return Record(*recorder, 3); });
  EXPECT_EQ(blocked.wait_for(kSoon), std::future_status::timeout);
  log.Release();
  EXPECT_TRUE(blocked.get());
  ASSERT_TRUE(recorder->Close(RunStatus::kComplete, "", {}));
  EXPECT_THAT(log.seqs, ElementsAre(0, 1, 2, 3));
}

TEST(RecorderTest, FailureWakesEveryProducerAndSticks) {
  WriterLog log;
  log.is_held = true;
  log.fail_at = 1;
  const auto recorder = Start(log, {.queue_capacity = 1, .batch_max = 1, .commit_interval_ms = 0});
  ASSERT_TRUE(Record(*recorder, 0));
  ASSERT_TRUE(log.WaitForBatches(1));
  ASSERT_TRUE(Record(*recorder, 1));
  std::vector<std::future<Status>> blocked;
  for (int seq = 2; seq < 5; ++seq) {
    blocked.push_back(std::async(std::launch::async, [&, seq] { return Record(*recorder, seq); }));
  }
  log.Release();
  for (auto& status : blocked) {
    const Status result = status.get();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().message, "the disk is full");
  }
  for (int seq = 5; seq < 8; ++seq) {
    EXPECT_EQ(Record(*recorder, seq).error().hint, "free space");
  }
  const std::vector<EvaluationRow> evaluations(1);
  const Status closed = recorder->Close(RunStatus::kComplete, "", evaluations);
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().message, "the disk is full");
  EXPECT_THAT(log.ends, ElementsAre("failed: recording failed: the disk is full"));
  EXPECT_EQ(log.batch_sizes.size(), 1u);
}

TEST(RecorderTest, FailedEvaluationsAreReported) {
  WriterLog log;
  log.fail_evaluations = true;
  const auto recorder = Start(log, {});
  const std::vector<EvaluationRow> evaluations(1);
  const Status closed = recorder->Close(RunStatus::kComplete, "", evaluations);
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().message, "no evaluations");
  EXPECT_THAT(log.ends, ElementsAre());
}

CheckpointRow CheckpointAt(std::int64_t cut) {
  CheckpointRow row;
  row.cut = cut;
  return row;
}

TEST(RecorderTest, ACheckpointIsCommittedAtOnceAndAfterItsSubnets) {
  WriterLog log;
  const auto recorder = Start(log, {.batch_max = 3, .commit_interval_ms = kNever});
  ASSERT_TRUE(recorder->AddCheckpoint(CheckpointAt(0), 2));
  for (int seq = 0; seq < 8; ++seq) ASSERT_TRUE(Record(*recorder, seq));
  ASSERT_TRUE(recorder->AddCheckpoint(CheckpointAt(8), 1));
  ASSERT_TRUE(recorder->AddCheckpoint(CheckpointAt(9), 1));
  EXPECT_THAT(log.checkpoints,
              ElementsAre(std::tuple(0, 2, 0u), std::tuple(8, 1, 8u), std::tuple(9, 1, 8u)));
  ASSERT_TRUE(recorder->Close(RunStatus::kComplete, "", {}));
}

TEST(RecorderTest, ACheckpointThatFailsStopsTheRun) {
  WriterLog log;
  log.fail_checkpoints = true;
  const auto recorder = Start(log, {.commit_interval_ms = kNever});
  ASSERT_TRUE(Record(*recorder, 0));
  const Status added = recorder->AddCheckpoint(CheckpointAt(1), 1);
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().message, "no checkpoints");
  EXPECT_EQ(Record(*recorder, 1).error().message, "no checkpoints");
  EXPECT_EQ(recorder->AddCheckpoint(CheckpointAt(2), 1).error().message, "no checkpoints");
  EXPECT_FALSE(recorder->Close(RunStatus::kComplete, "", {}));
}

TEST(RecorderTest, ACheckpointDoesNotWaitForAWriterThatHasFailed) {
  WriterLog log;
  log.fail_at = 1;
  log.is_held = true;
  const auto recorder = Start(log, {.batch_max = 1, .commit_interval_ms = 0});
  ASSERT_TRUE(Record(*recorder, 0));
  ASSERT_TRUE(log.WaitForBatches(1));
  auto added =
      std::async(std::launch::async, [&] { return recorder->AddCheckpoint(CheckpointAt(1), 1); });
  log.Release();
  EXPECT_EQ(added.get().error().message, "the disk is full");
  EXPECT_TRUE(log.checkpoints.empty());
  EXPECT_FALSE(recorder->Close(RunStatus::kComplete, "", {}));
}

/// Options that commit each subnet by itself and keep heads in `heads`.
RecorderOptions KeepingHeads(std::int64_t every, std::vector<Head>& heads) {
  RecorderOptions options;
  options.batch_max = 1;
  options.head_every = every;
  options.on_head = [&heads](Head head) -> Status {
    heads.push_back(std::move(head));
    return {};
  };
  return options;
}

TEST(RecorderTest, KeepsAHeadOfEachMultipleAndOfTheEnd) {
  WriterLog log;
  std::vector<Head> heads;
  const auto recorder = Start(log, KeepingHeads(3, heads));
  for (std::int64_t seq = 0; seq < 8; ++seq) EXPECT_TRUE(Record(*recorder, seq));
  EXPECT_TRUE(recorder->Close(RunStatus::kComplete, "", {}));
  ASSERT_EQ(heads.size(), 3u);
  EXPECT_EQ(heads[0].subnets, 3);
  EXPECT_EQ(heads[1].subnets, 6);
  EXPECT_FALSE(heads[1].end);
  EXPECT_EQ(heads[2].subnets, 8);
  EXPECT_TRUE(heads[2].end);
}

TEST(RecorderTest, KeepsOnlyTheLastHeadWithoutAnInterval) {
  WriterLog log;
  std::vector<Head> heads;
  const auto recorder = Start(log, KeepingHeads(0, heads));
  for (std::int64_t seq = 0; seq < 8; ++seq) EXPECT_TRUE(Record(*recorder, seq));
  EXPECT_TRUE(recorder->Close(RunStatus::kComplete, "", {}));
  ASSERT_EQ(heads.size(), 1u);
  EXPECT_TRUE(heads[0].end);
}

TEST(RecorderTest, HeadThatCannotBeKeptStopsTheRun) {
  WriterLog log;
  std::vector<Head> heads;
  RecorderOptions options = KeepingHeads(2, heads);
  options.on_head = [](Head) -> Status { return Failed("no disk for heads"); };
  const auto recorder = Start(log, options);
  Status recorded;
  for (std::int64_t seq = 0; recorded && seq < 1000; ++seq) recorded = Record(*recorder, seq);
  ASSERT_FALSE(recorded);
  EXPECT_EQ(recorded.error().message, "no disk for heads");
  EXPECT_FALSE(recorder->Close(RunStatus::kComplete, "", {}));
  EXPECT_THAT(log.ends, ElementsAre("failed: recording failed: no disk for heads"));
}

TEST(RecorderTest, LastHeadThatCannotBeKeptIsReported) {
  WriterLog log;
  RecorderOptions options;
  options.on_head = [](Head) -> Status { return Failed("no disk for heads"); };
  const auto recorder = Start(log, options);
  EXPECT_TRUE(Record(*recorder, 0));
  const Status closed = recorder->Close(RunStatus::kComplete, "", {});
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().message, "no disk for heads");
  EXPECT_THAT(log.ends, ElementsAre("complete: "));
}

TEST(RecorderTest, WithoutCloseWhatIsQueuedIsCommitted) {
  WriterLog log;
  {
    const auto recorder = Start(log, {.commit_interval_ms = kNever});
    for (int seq = 0; seq < 5; ++seq) ASSERT_TRUE(Record(*recorder, seq));
  }
  EXPECT_EQ(log.seqs.size(), 5u);
  EXPECT_TRUE(log.ends.empty());
}

TEST(RecorderTest, UseAfterCloseIsAProgrammersMistake) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  WriterLog log;
  const auto recorder = Start(log, {});
  ASSERT_TRUE(recorder->Close(RunStatus::kComplete, "", {}));
  EXPECT_DEATH(static_cast<void>(Record(*recorder, 0)), "after the recorder was closed");
  EXPECT_DEATH(static_cast<void>(recorder->Close(RunStatus::kComplete, "", {})), "closed twice");
}

TEST(RecorderTest, ManyObserversFillOneRecord) {
  constexpr int kThreads = 4, kSubnets = 400;
  TemporaryFolder folder;
  const auto recorder =
      Recorder::Start(CreateSample(folder / "run.db"),
                      {.queue_capacity = 8, .batch_max = 5, .commit_interval_ms = 1});
  std::atomic<int> next{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int seq = next++; seq < kSubnets; seq = next++) EXPECT_TRUE(Record(*recorder, seq));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<EvaluationRow> evaluations = {{0, {1}, 2, 3}};
  ASSERT_TRUE(recorder->Close(RunStatus::kComplete, "", evaluations));
  auto reader = RecordReader::Open(folder / "run.db");
  ASSERT_TRUE(reader);
  const auto subnets = ReadSubnets(**reader);
  ASSERT_TRUE(subnets) << subnets.error().message;
  ASSERT_EQ(subnets->size(), std::size_t{kSubnets});
  for (int seq = 0; seq < kSubnets; ++seq) {
    const SubnetRow& row = (*subnets)[seq];
    EXPECT_EQ(row.seq, seq);
    EXPECT_EQ(row.choices, SampleSubnet(seq).choices);
    EXPECT_EQ(row.loss_bits, 0x3f000000u);
    EXPECT_EQ(row.accesses.size(), 3u);
    EXPECT_EQ(row.activations, SampleSubnet(seq).activations);
  }
  EXPECT_EQ((*reader)->Evaluations(), evaluations);
  EXPECT_EQ((*reader)->Run()->status, RunStatus::kComplete);
}

// A real writer that fails: a subnet that is recorded twice.
TEST(RecorderTest, RealWritersErrorStopsTheRunAndKeepsTheRest) {
  TemporaryFolder folder;
  const auto recorder =
      Recorder::Start(CreateSample(folder / "run.db"),
                      {.queue_capacity = 1, .batch_max = 1, .commit_interval_ms = 0});
  ASSERT_TRUE(Record(*recorder, 0));
  Status status = Record(*recorder, 0);
  for (int seq = 1; status; ++seq) status = Record(*recorder, seq);
  EXPECT_THAT(status.error().message, HasSubstr("subnets.seq"));
  EXPECT_FALSE(recorder->Close(RunStatus::kComplete, "", {}));
  auto reader = RecordReader::Open(folder / "run.db");
  EXPECT_EQ((*reader)->SubnetCount(), 1);
  EXPECT_EQ((*reader)->Run()->status, RunStatus::kFailed);
  EXPECT_THAT((*reader)->Run()->status_detail, HasSubstr("recording failed"));
}

}  // namespace
}  // namespace verbatim
