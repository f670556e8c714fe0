#include "replay/recording_sink.h"

#include <fmt/format.h>

#include "supernet/spec.h"

namespace verbatim {
namespace {

constexpr std::size_t kBatchMax = 64;  // subnets per transaction

}  // namespace

bool RecordingSink::OnEnvironment(const std::vector<EnvironmentRow>& environment) {
  environment_ = environment;
  return next_.OnEnvironment(environment);
}

void RecordingSink::OnDataset(const Digest& dataset) {
  run_.dataset_digest = dataset;
  next_.OnDataset(dataset);
}

void RecordingSink::OnLayers(const std::vector<LayerRow>& layers) {
  auto writer = RecordWriter::Create(path_, run_, environment_, layers, overwrite_);
  if (writer) {
    writer_ = *std::move(writer);
  } else {
    status_ = tl::unexpected(std::move(writer).error());
  }
  next_.OnLayers(layers);
}

bool RecordingSink::OnSubnet(const SubnetRow& subnet) {
  batch_.push_back(subnet);
  ++subnets_;
  if (batch_.size() == kBatchMax) Flush();
  return next_.OnSubnet(subnet) && status_.has_value();
}

void RecordingSink::OnEvaluations(const std::vector<EvaluationRow>& evaluations) {
  evaluations_.insert(evaluations_.end(), evaluations.begin(), evaluations.end());
  next_.OnEvaluations(evaluations);
}

void RecordingSink::Flush() {
  if (status_) status_ = writer_->WriteSubnets(batch_);
  batch_.clear();
}

Status RecordingSink::Close(const std::string& why) {
  if (status_ && writer_) Flush();
  if (!status_ && writer_) {
    // What was written stays, and says why it ends there, if that can still be written.
    const Status closed = writer_->Close(RunStatus::kFailed, status_.error().message);
    static_cast<void>(closed);
  }
  RETURN_IF_ERROR(status_);
  if (!writer_) return {};
  ASSIGN_OR_RETURN(const Spec spec, ParseSpec(run_.spec_json, "the replayed spec"));
  const bool has_subnets = subnets_ == run_.subnets_planned;
  const bool has_evaluations = std::ssize(evaluations_) == spec.evaluation.subnets;
  if (has_subnets && has_evaluations) return writer_->Close(RunStatus::kComplete, "", evaluations_);
  return writer_->Close(
      RunStatus::kInterrupted,
      fmt::format("{} after {} of {} subnets{}", why, subnets_, run_.subnets_planned,
                  has_subnets ? ", before the evaluation" : ""),
      evaluations_);
}

}  // namespace verbatim
