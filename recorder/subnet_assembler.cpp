#include "recorder/subnet_assembler.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "base/check.h"
#include "recorder/content_digest.h"

namespace verbatim {
namespace {

auto Key(const AccessRow& row) {
  return row.layer;
}
auto Key(const ActivationRow& row) {
  return std::tuple(row.microbatch, row.position);
}
auto Key(const ActivityRow& row) {
  return std::tuple(row.stage, row.microbatch, row.phase, row.begin_ns);
}

template <typename Row>
void SortByKey(std::vector<Row>& rows) {
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return Key(a) < Key(b); });
}

}  // namespace

SubnetRow& SubnetAssembler::OpenSubnet(std::int64_t seq) {
  const auto found = open_.find(seq);
  VERBATIM_CHECK(found != open_.end(), "an event of subnet {}, which is not under way", seq);
  return found->second;
}

void SubnetAssembler::OnSubnetStarted(std::int64_t seq, std::vector<std::uint16_t> choices,
                                      std::vector<std::uint32_t> samples) {
  SubnetRow subnet;
  subnet.seq = seq;
  subnet.choices = std::move(choices);
  subnet.samples = std::move(samples);
  const std::scoped_lock lock(mutex_);
  const bool is_new = open_.emplace(seq, std::move(subnet)).second;
  VERBATIM_CHECK(is_new, "subnet {} was started twice", seq);
}

void SubnetAssembler::OnBatch(std::int64_t seq, const Digest& batch) {
  const std::scoped_lock lock(mutex_);
  OpenSubnet(seq).batch_digest = batch;
}

void SubnetAssembler::OnAccess(std::int64_t seq, const AccessRow& access) {
  const std::scoped_lock lock(mutex_);
  OpenSubnet(seq).accesses.push_back(access);
}

void SubnetAssembler::OnActivation(std::int64_t seq, const ActivationRow& activation) {
  const std::scoped_lock lock(mutex_);
  OpenSubnet(seq).activations.push_back(activation);
}

void SubnetAssembler::OnActivity(std::int64_t seq, const ActivityRow& activity) {
  const std::scoped_lock lock(mutex_);
  OpenSubnet(seq).activities.push_back(activity);
}

void SubnetAssembler::OnLoss(std::int64_t seq, float loss) {
  const std::scoped_lock lock(mutex_);
  OpenSubnet(seq).loss_bits = std::bit_cast<std::uint32_t>(loss);
}

Status SubnetAssembler::OnSubnetFinished(std::int64_t seq) {
  SubnetRow subnet;
  {
    const std::scoped_lock lock(mutex_);
    subnet = std::move(OpenSubnet(seq));
    open_.erase(seq);
  }
  SortByKey(subnet.accesses);
  SortByKey(subnet.activations);
  SortByKey(subnet.activities);
  subnet.content_leaf = ContentLeaf(subnet);
  subnet.layout_leaf = LayoutLeaf(subnet);
  return sink_(std::move(subnet));
}

}  // namespace verbatim
