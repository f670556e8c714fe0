// Proves that a job arrives as it was sent, and that nothing else is taken for one.
#include "trainer/ranks/job.h"

#include <gmock/gmock.h>

namespace verbatim {
namespace {

using testing::HasSubstr;

RankJob SampleJob() {
  RankJob job;
  job.spec_json = R"({"name":"a \"quoted\" name"})";
  job.spec_folder = "/data/ü";
  job.dataset_digest = "00ff";
  job.device = "cpu";
  job.threads_per_stage = 2;
  job.stages = 8;
  job.in_flight = 6;
  job.partition = "6,6,5";
  job.recompute = "1-6,7-12";
  job.device_memory = std::int64_t{1} << 40;
  job.costs_json = R"({"version":1})";
  job.record_level = "full";
  job.is_observed = false;
  job.stop_on_nan = false;
  job.sequence = std::vector<std::int64_t>{0, 1, 2, 7, 9, 10};
  job.first = 3;
  job.begin_ns = 5'000'000'000;
  job.has_checkpoints = true;
  job.checkpoint_every = 200;
  job.sends_layers = true;
  return job;
}

TEST(RankJob, ArrivesAsItWasSent) {
  RankJob plain;
  plain.spec_json = "{}";
  plain.device = "cpu";
  RankJob empty = SampleJob();
  empty.sequence.emplace();
  for (const RankJob& job : {SampleJob(), plain, empty}) {
    const auto parsed = ParseRankJob(ToJson(job));
    ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
    EXPECT_EQ(*parsed, job);
  }
}

TEST(RankJob, AWholeStreamIsShort) {
  RankJob job = SampleJob();
  job.sequence->clear();
  for (std::int64_t seq = 0; seq < 100'000; ++seq) job.sequence->push_back(seq);
  EXPECT_LT(ToJson(job).size(), 600u);
  EXPECT_EQ(*ParseRankJob(ToJson(job)), job);
}

TEST(RankJob, RefusesWhatIsNone) {
  const std::string sound = ToJson(SampleJob());
  const struct {
    std::string part, other, says;
  } cases[] = {
      {sound, "", "the job of rank 0"},
      {R"("version":1,"spec")", R"("version":2,"spec")", "version 2"},
      {"verbatim-rank-job", "verbatim-head", "is no job"},
      {R"("stages":8)", R"("stages":0)", "stages: must be from 1"},
      {R"("stages":8,)", "", "stages: required"},
      {R"("recompute":"1-6,7-12",)", "", "recompute: required"},
      {R"("in_flight":6)", R"("in_flight":"6")", "in_flight: expected an integer"},
      {R"("is_observed":false)", R"("is_observed":0)", "is_observed: expected"},
      {R"("first":3)", R"("first":3,"last":4)", "last: unknown field"},
      {"[0,3]", "[0,3,4]", "a first subnet and a count"},
      {"[7,1]", "[2,1]", "sequence: must be from 3"},
      {"[9,2]", "[9,0]", "sequence: must be from 1"},
      {"[9,2]", "[9,4294967295]", "sequence: must be"},
      {"[[0", "[7,[0", "sequence: expected"},
  };
  for (const auto& [part, other, says] : cases) {
    std::string text = sound;
    const std::size_t at = text.find(part);
    ASSERT_NE(at, std::string::npos) << part;
    const auto parsed = ParseRankJob(text.replace(at, part.size(), other));
    ASSERT_FALSE(parsed.has_value()) << part << " became " << other;
    EXPECT_EQ(parsed.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(parsed.error().message, HasSubstr(says));
  }
}

}  // namespace
}  // namespace verbatim
