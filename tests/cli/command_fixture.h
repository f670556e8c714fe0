// Runs command lines inside the test's process and keeps what they print.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "base/check.h"
#include "cli/command_line.h"
#include "store/writer.h"
#include "tests/temporary_folder.h"
#include "tests/verify/sample_run.h"

namespace verbatim {

struct CommandResult {
  int exit_code;
  std::string out;
  std::string err;
};

/// An engine that computes nothing: it notes what was asked and re-executes to a given run.
class FakeEngine : public Engine {
 public:
  Status Train(const TrainRequest& request) override {
    ++trained;
    train_request = request;
    return train_status;
  }
  Status Resume(std::unique_ptr<RecordReader>, const ResumeRequest& request,
                Verdict& verdict) override {
    resume_request = request;
    verdict.first_difference = resume_difference;
    return resume_status;
  }
  Status Work(const WorkRequest& request) override {
    work_request = request;
    return work_status;
  }
  void Dismiss(const RankPlace&, const std::optional<Error>& why) override {
    dismissed.push_back(why);
  }
  Status Reexecute(const RunInfo&, const ReexecuteOptions& options,
                   const std::optional<RankPlace>& place, ReexecutionSink& sink) override {
    reexecute_place = place;
    reexecute_options = options;
    if (!reexecute_status) return reexecute_status;
    if (!sink.OnEnvironment(computed.environment)) return {};
    sink.OnDataset(computed.run.dataset_digest);
    sink.OnLayers(computed.layers);
    for (const std::int64_t seq : options.subnets) {
      if (!sink.OnSubnet(computed.subnets[static_cast<std::size_t>(seq)])) return {};
    }
    if (options.evaluate) sink.OnEvaluations(computed.evaluations);
    return {};
  }
  /// Layer i of the sample's space takes i + 1 ms forward.
  Result<MeasuredSpace> Profile(const ProfileRequest& request) override {
    profile_request = request;
    if (!profile_status) return tl::unexpected(profile_status.error());
    const Spec spec = SampleSpec();
    auto space = SearchSpace::Build(spec, {1, 8, 8}, 10);
    VERBATIM_CHECK(space.has_value(), "{}", space.error().message);
    CostTable costs = AnalyticCosts(*space, spec);
    costs.source = CostSource::kMeasured;
    for (std::size_t id = 0; id < costs.layers.size(); ++id) {
      costs.layers[id].forward = 1e-3 * static_cast<double>(id + 1);
    }
    return MeasuredSpace{spec, *std::move(space), std::move(costs)};
  }
  Result<EngineDescription> Describe(const std::string&, std::int64_t threads_per_stage) override {
    described_threads = threads_per_stage;
    return EngineDescription{computed.environment, devices, "1 device"};
  }

  Result<Explanation> Explain(const ExplainSide& left, const ExplainSide& right,
                              std::int64_t seq) override {
    explained = {left, right};
    Explanation given = explanation;
    given.seq = seq;
    return given;
  }

  int trained = 0;
  TrainRequest train_request;
  Status train_status;
  std::optional<ResumeRequest> resume_request;
  std::optional<Difference> resume_difference;
  Status resume_status;
  std::optional<ProfileRequest> profile_request;
  Status profile_status;
  SampleRun computed = MakeSampleRun();
  std::optional<WorkRequest> work_request;
  Status work_status;
  std::vector<std::optional<Error>> dismissed;
  std::optional<RankPlace> reexecute_place;
  ReexecuteOptions reexecute_options;
  Status reexecute_status;
  std::vector<ExplainSide> explained;
  Explanation explanation;
  std::vector<std::string> devices = {"cpu"};
  std::int64_t described_threads = 0;
};

/// Each test works in a folder of its own.
class CommandTest : public testing::Test {
 protected:
  CommandTest() { unsetenv("VERBATIM_ENGINE"); }

  static CommandResult RunWith(Engine* engine, const std::vector<std::string>& arguments) {
    std::vector<std::string> words{"verbatim"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int exit_code = RunCommandLine(static_cast<int>(words.size()), argv.data(), engine);
    CommandResult result{exit_code, testing::internal::GetCapturedStdout(), ""};
    result.err = testing::internal::GetCapturedStderr();
    return result;
  }
  CommandResult Run(const std::vector<std::string>& arguments) {
    return RunWith(&engine_, arguments);
  }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  std::string WriteFile(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name), std::ios::binary) << text;
    return Path(name);
  }
  static std::string ReadFile(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }

  /// As the run that computed `sample` would have written it, content digests included.
  std::string WriteRecord(SampleRun sample, const std::string& name = "run.db") const {
    Seal(sample);
    auto writer = RecordWriter::Create(Path(name), sample.run, sample.environment, sample.layers,
                                       /*overwrite=*/false);
    VERBATIM_CHECK(writer.has_value(), "{}", writer.error().message);
    VERBATIM_CHECK((*writer)->WriteSubnets(sample.subnets).has_value());
    VERBATIM_CHECK((*writer)
                       ->Close(sample.run.status, sample.run.status_detail, sample.evaluations)
                       .has_value());
    return Path(name);
  }

  const test::TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path().string();
  FakeEngine engine_;
};

}  // namespace verbatim
