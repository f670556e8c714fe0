#include "schedule/simulate/simulator.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <optional>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "schedule/scheduler.h"
#include "schedule/simulate/causal_bound.h"
#include "schedule/simulate/device_cache.h"
#include "schedule/simulate/flight.h"
#include "schedule/simulate/virtual_time.h"
#include "schedule/simulate/weight_memory.h"

namespace verbatim {
namespace {

constexpr std::int64_t kFinishedPerReport = 256;

/// At least what the dearest subnet takes by itself, with every transfer that it may need.
double SubnetMax(const SearchSpace& space, const CostTable& costs,
                 const SimulationOptions& options) {
  std::vector<double> dearest(static_cast<std::size_t>(space.positions()));
  for (const Layer& layer : space.layers()) {
    const LayerCost& cost = costs.layers[layer.id];
    const std::int64_t state = cost.parameter_bytes + cost.optimizer_bytes;
    const auto bytes = static_cast<double>(std::max(cost.output_bytes, state));
    double transfer = 2.0 * (options.latency + options.time_per_byte * bytes);
    if (options.device_memory) {
      transfer += 2.0 * options.device_memory->time_per_byte * static_cast<double>(state);
    }
    const double again = options.recompute.empty() ? 0.0 : cost.forward;
    const double time = options.microbatches * (cost.forward + cost.backward + again + transfer);
    dearest[layer.position] = std::max(dearest[layer.position], time + cost.update);
  }
  double sum = 0.0;
  for (const double time : dearest) sum += time;
  return sum;
}

class Simulator {
 public:
  Simulator(const SearchSpace& space, const CostTable& costs, const Partition& partition,
            const Policy& policy, const Sampler& sampler, const SimulationOptions& options)
      : space_(space),
        costs_(costs),
        partition_(partition),
        sampler_(sampler),
        options_(options),
        time_(SubnetMax(space, costs, options)),
        meter_(costs, options_.recompute, time_, options.last_microbatch),
        scheduler_(space, partition, policy,
                   {options.microbatches, options.in_flight_max,
                    /*gates_residency=*/options.device_memory.has_value()}),
        graph_(space),
        bound_(space, costs, options.microbatches, options.last_microbatch),
        memory_(space, costs, partition.Ranges(sampler.Draw(0))),
        least_(space, LayerBytesOf(costs), partition.stages()),
        stages_(static_cast<std::size_t>(partition.stages())) {
    if (options.device_memory) {
      devices_.emplace(space, costs, partition.stages(), *options.device_memory, time_);
    }
  }

  SimulationReport Run(const std::function<void(std::int64_t)>& finished);

 private:
  struct Stage {
    std::optional<Task> running;
    bool is_woken = false;
    Ticks forward = 0;
    Ticks backward = 0;
    Ticks update = 0;
    Ticks recompute = 0;
    std::int64_t held = 0;
    std::int64_t held_max = 0;
    std::int64_t activation_bytes = 0;
    std::int64_t activation_bytes_max = 0;
    std::int64_t whole_bytes = 0;
    std::int64_t whole_bytes_max = 0;
  };
  /// The end of a stage's task or of a copy of a layer, or the arrival of a delivery there.
  struct Event {
    Ticks at;
    int stage;
    std::uint64_t order;
    std::optional<Delivery> delivery;
    std::optional<Transfer::Kind> copy = std::nullopt;
    bool operator>(const Event& other) const {
      return std::tie(at, stage, order) > std::tie(other.at, other.stage, other.order);
    }
  };

  bool IsLast(const Task& task) const { return task.microbatch == options_.microbatches - 1; }
  bool IsShown(std::int64_t seq) const {
    return options_.timeline_begin <= seq && seq < options_.timeline_end;
  }

  void Foresee();
  void Admit();
  void StartCopies();
  /// What has become resident may start, and what waits for that alone is wanted.
  void Tell(const std::vector<Residency>& ready);
  void WantWhatWaits();
  void PassTimeUntil(Ticks at);
  void Wake(int stage);
  void WakeAll();
  void StartWoken();
  void Start(int stage, const Task& task);
  void Handle(const Event& event);
  void Finish(int stage);
  void Count(Stage& stage, const Task& task, Ticks duration);
  void Hold(Stage& stage, const MicrobatchLoad& load);
  void BeginBackward(Stage& stage, const MicrobatchLoad& load);
  void EndBackward(Stage& stage, const MicrobatchLoad& load);
  void BeginUse(int stage, std::int64_t seq);
  void EndUse(int stage, std::int64_t seq);
  std::int64_t CountBytes(const Delivery& delivery);
  void Send(const Delivery& delivery);
  void Arrive(const Delivery& delivery);
  void MoveVersion(const Delivery& delivery);
  SimulationReport Report();

  const SearchSpace& space_;
  const CostTable& costs_;
  const Partition& partition_;
  const Sampler& sampler_;
  const SimulationOptions options_;
  const VirtualTime time_;
  const LoadMeter meter_;
  Scheduler scheduler_;
  CausalGraph graph_;
  CausalBound bound_;
  WeightMemory memory_;
  LeastDeviceMemory least_;
  std::optional<DeviceCache> devices_;
  std::deque<Choices> foreseen_;  ///< from subnet `admitted_` on
  Flights flights_;
  std::vector<Stage> stages_;
  std::vector<int> woken_;
  int running_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t events_made_ = 0;
  std::unordered_map<std::int64_t, Ticks> link_free_;  ///< by from · stages + to
  std::vector<Delivery> deliveries_;
  Ticks now_ = 0;
  std::int64_t admitted_ = 0;
  std::int64_t finished_ = 0;
  SimulationReport report_;
};

SimulationReport Simulator::Run(const std::function<void(std::int64_t)>& finished) {
  std::int64_t reported = 0;
  while (finished_ < options_.subnets) {
    while (scheduler_.CanAdmit() && admitted_ < options_.subnets) Admit();
    StartWoken();
    if (devices_) StartCopies();
    VERBATIM_CHECK(!events_.empty(), "stuck after {} of {} subnets", finished_, options_.subnets);
    const Event event = events_.top();
    events_.pop();
    PassTimeUntil(event.at);
    Handle(event);
    if (devices_) WantWhatWaits();
    if (finished && finished_ >= reported + kFinishedPerReport) finished(reported = finished_);
  }
  return Report();
}

void Simulator::PassTimeUntil(Ticks at) {
  if (devices_ && at > now_) {
    for (int stage = 0; stage < static_cast<int>(stages_.size()); ++stage) {
      if (!stages_[stage].running) devices_->Idle(stage, at - now_);
    }
  }
  now_ = at;
}

void Simulator::StartCopies() {
  for (const DeviceCache::Begun& begun : devices_->BeginTransfers()) {
    events_.push({now_ + begun.duration, begun.stage, events_made_++, std::nullopt, begun.kind});
  }
}

void Simulator::Tell(const std::vector<Residency>& ready) {
  for (const Residency& part : ready) {
    scheduler_.Resident(part);
    Wake(part.stage);
  }
}

void Simulator::WantWhatWaits() {
  for (const Residency& part : scheduler_.TakeWanted()) devices_->Want(part);
}

void Simulator::Foresee() {
  const std::int64_t window = options_.device_memory ? options_.device_memory->window : 0;
  const std::int64_t end = std::min(admitted_ + 1 + window, options_.subnets);
  for (std::int64_t seq = admitted_ + std::ssize(foreseen_); seq < end; ++seq) {
    foreseen_.push_back(sampler_.Draw(seq));
    if (devices_) devices_->Foresee(seq, foreseen_.back(), partition_.Ranges(foreseen_.back()));
  }
}

void Simulator::Admit() {
  Foresee();
  const std::int64_t seq = admitted_++;
  const Choices choices = std::move(foreseen_.front());
  foreseen_.pop_front();
  Flight& flight = flights_.Add();
  flight.layers.clear();
  for (int position = 0; position < space_.positions(); ++position) {
    flight.layers.push_back(space_.LayerAt(position, choices).id);
  }
  const auto predecessors = graph_.Add(seq, choices);
  flight.predecessors.assign(predecessors.begin(), predecessors.end());
  flight.read.assign(flight.layers.size(), CausalPredecessors::kNone);
  flight.copied.assign(flight.layers.size(), false);
  bound_.Add(seq, flight.layers, flight.predecessors);
  deliveries_.clear();
  scheduler_.Admit(seq, choices, deliveries_);
  const StageRanges& ranges = scheduler_.RangesOf(seq);
  least_.Add(choices, ranges);
  flight.loads.clear();
  for (int stage = 0; stage < ranges.stages(); ++stage) {
    flight.loads.push_back(meter_.Measure(flight.layers, ranges.Begin(stage), ranges.End(stage)));
  }
  for (const Delivery& delivery : deliveries_) Send(delivery);
  Wake(0);
  if (!devices_) return;
  Tell(devices_->Admit(seq));
  WantWhatWaits();
}

void Simulator::Wake(int stage) {
  if (stages_[stage].is_woken) return;
  stages_[stage].is_woken = true;
  woken_.push_back(stage);
}

void Simulator::WakeAll() {
  for (int stage = 0; stage < static_cast<int>(stages_.size()); ++stage) Wake(stage);
}

void Simulator::StartWoken() {
  // A policy may make stages wait for each other: then all are asked once nothing runs.
  if (running_ == 0) WakeAll();
  std::sort(woken_.begin(), woken_.end());
  for (const int stage : woken_) {
    stages_[stage].is_woken = false;
    if (stages_[stage].running) continue;
    if (const auto task = scheduler_.Next(stage)) Start(stage, *task);
  }
  woken_.clear();
}

void Simulator::Start(int index, const Task& task) {
  Stage& stage = stages_[index];
  const StageLoad& load = flights_.At(task.seq).loads[index];
  const Ticks duration = load.DurationOf(task, IsLast(task));
  const MicrobatchLoad& microbatch = IsLast(task) ? load.last : load.whole;
  if (task.kind == TaskKind::kForward) {
    if (task.microbatch == 0) BeginUse(index, task.seq);
    Hold(stage, microbatch);
  }
  if (task.kind == TaskKind::kBackward) BeginBackward(stage, microbatch);
  stage.running = task;
  ++running_;
  Count(stage, task, duration);
  if (IsShown(task.seq)) {
    report_.timeline.push_back({task, index, time_.Units(now_), time_.Units(now_ + duration)});
  }
  events_.push({now_ + duration, index, events_made_++, std::nullopt});
}

void Simulator::Count(Stage& stage, const Task& task, Ticks duration) {
  switch (task.kind) {
    case TaskKind::kForward:
      stage.forward += duration;
      return;
    case TaskKind::kBackward:
      stage.backward += duration;
      return;
    case TaskKind::kUpdate:
      stage.update += duration;
      return;
  }
}

void Simulator::Hold(Stage& stage, const MicrobatchLoad& load) {
  stage.held_max = std::max(stage.held_max, ++stage.held);
  stage.activation_bytes_max =
      std::max(stage.activation_bytes_max, stage.activation_bytes + load.activation_bytes_max);
  stage.activation_bytes += load.activation_bytes;
  stage.whole_bytes += load.whole_bytes;
  stage.whole_bytes_max = std::max(stage.whole_bytes_max, stage.whole_bytes);
}

void Simulator::BeginBackward(Stage& stage, const MicrobatchLoad& load) {
  const std::int64_t others = stage.activation_bytes - load.activation_bytes;
  stage.activation_bytes_max =
      std::max(stage.activation_bytes_max, others + load.activation_bytes_max);
  stage.recompute += load.recompute;
}

void Simulator::EndBackward(Stage& stage, const MicrobatchLoad& load) {
  stage.activation_bytes -= load.activation_bytes;
  stage.whole_bytes -= load.whole_bytes;
  --stage.held;
}

void Simulator::Handle(const Event& event) {
  if (event.delivery) {
    Arrive(*event.delivery);
  } else if (event.copy) {
    Tell(devices_->Finish(event.stage, *event.copy));
  } else {
    Finish(event.stage);
  }
}

void Simulator::Finish(int index) {
  Stage& stage = stages_[index];
  const Task task = *std::exchange(stage.running, std::nullopt);
  --running_;
  if (task.kind == TaskKind::kUpdate) {
    EndUse(index, task.seq);
    if (devices_) Tell(devices_->Updated({task.seq, index}));
  }
  if (task.kind == TaskKind::kBackward) {
    const StageLoad& load = flights_.At(task.seq).loads[index];
    EndBackward(stage, IsLast(task) ? load.last : load.whole);
  }
  deliveries_.clear();
  const bool is_finished = scheduler_.Finished(index, task, deliveries_);
  for (const Delivery& delivery : deliveries_) Send(delivery);
  Wake(index);
  if (!is_finished) return;
  flights_.Remove(task.seq);
  ++finished_;
  WakeAll();
}

void Simulator::BeginUse(int stage, std::int64_t seq) {
  Flight& flight = flights_.At(seq);
  const StageLoad& load = flight.loads[stage];
  for (int position = load.begin; position < load.end; ++position) {
    const int layer = flight.layers[position];
    if (space_.layer(layer).IsVersioned()) flight.read[position] = memory_.Read(layer, seq);
  }
}

void Simulator::EndUse(int stage, std::int64_t seq) {
  const Flight& flight = flights_.At(seq);
  const StageLoad& load = flight.loads[stage];
  const std::int64_t lowest = scheduler_.LowestUnfinished();
  for (int position = load.begin; position < load.end; ++position) {
    const int layer = flight.layers[position];
    if (!space_.layer(layer).IsVersioned()) continue;
    const std::int64_t read = flight.read[position];
    const std::int64_t base = memory_.Update(layer, seq, read, stage, lowest);
    if (flight.copied[position]) memory_.DropCopy(layer, stage);
    ++report_.accesses;
    if (flight.predecessors[position] != CausalPredecessors{read, base}) ++report_.violations;
    if (IsShown(seq)) report_.timeline_accesses.push_back({seq, layer, stage, read, base});
  }
}

std::int64_t Simulator::CountBytes(const Delivery& delivery) {
  if (delivery.kind == Delivery::Kind::kVersion) {
    const LayerCost& cost = costs_.layers[delivery.layer];
    const Flight& flight = flights_.At(delivery.task.seq);
    const CausalPredecessors& predecessors =
        flight.predecessors[space_.layer(delivery.layer).position];
    // Who updates the version too takes the optimizer state along.
    const bool is_base = predecessors.base == delivery.version;
    const std::int64_t bytes = cost.parameter_bytes + (is_base ? cost.optimizer_bytes : 0);
    report_.moved.versions += bytes;
    return bytes;
  }
  const bool is_forward = delivery.task.kind == TaskKind::kForward;
  // A gradient has the shape of the activation that it belongs to.
  const StageLoad& load =
      flights_.At(delivery.task.seq).loads[is_forward ? delivery.from : delivery.to];
  const std::int64_t bytes = (IsLast(delivery.task) ? load.last : load.whole).output_bytes;
  (is_forward ? report_.moved.activations : report_.moved.gradients) += bytes;
  return bytes;
}

void Simulator::Send(const Delivery& delivery) {
  const bool is_version = delivery.kind == Delivery::Kind::kVersion;
  const bool goes_home = is_version && devices_ && devices_->Holds(delivery.layer);
  if (delivery.from == delivery.to || goes_home) return Arrive(delivery);
  const std::int64_t bytes = CountBytes(delivery);
  const Ticks on_link = time_.Of(options_.time_per_byte * static_cast<double>(bytes));
  const Ticks latency = time_.Of(options_.latency);
  if (on_link + latency == 0) return Arrive(delivery);
  Ticks& free = link_free_[delivery.from * std::ssize(stages_) + delivery.to];
  free = std::max(free, now_) + on_link;
  events_.push({free + latency, delivery.to, events_made_++, delivery});
}

void Simulator::Arrive(const Delivery& delivery) {
  if (delivery.kind == Delivery::Kind::kVersion) MoveVersion(delivery);
  scheduler_.Deliver(delivery);
  Wake(delivery.to);
}

void Simulator::MoveVersion(const Delivery& delivery) {
  // A policy that ignores causality does not wait for versions.
  if (!flights_.Contains(delivery.task.seq)) return;
  Flight& flight = flights_.At(delivery.task.seq);
  const int position = space_.layer(delivery.layer).position;
  if (flight.predecessors[position].base == delivery.version) {
    memory_.MoveNewest(delivery.layer, delivery.to);
  } else {
    memory_.AddCopy(delivery.layer, delivery.to);
    flight.copied[position] = true;
  }
}

SimulationReport Simulator::Report() {
  report_.subnets = options_.subnets;
  report_.makespan = time_.Units(now_);
  report_.critical_path = bound_.length();
  Ticks work = 0;
  Ticks recompute = 0;
  for (std::size_t index = 0; index < stages_.size(); ++index) {
    const Stage& stage = stages_[index];
    const int i = static_cast<int>(index);
    work += stage.forward + stage.backward + stage.update - stage.recompute;
    recompute += stage.recompute;
    report_.stages.push_back(
        {.forward = time_.Units(stage.forward),
         .backward = time_.Units(stage.backward),
         .update = time_.Units(stage.update),
         .recompute = time_.Units(stage.recompute),
         .held_max = stage.held_max,
         .activation_bytes = stage.activation_bytes_max,
         .whole_activation_bytes = stage.whole_bytes_max,
         .weight_bytes = devices_ ? devices_->peak_bytes(i) : memory_.peak_bytes(i)});
  }
  report_.work = time_.Units(work);
  report_.recompute = time_.Units(recompute);
  report_.device_memory_least = least_.bytes();
  report_.part_bytes = least_.mean_bytes();
  if (devices_) report_.device_memory = devices_->Report();
  return std::move(report_);
}

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

double DeviceMemoryUse::MeanStall() const {
  return Mean(stall);
}

double DeviceMemoryUse::MeanStallForRoom() const {
  return Mean(stall_for_room);
}

double SimulationReport::bound() const {
  return std::max(critical_path, work / static_cast<double>(stages.size()));
}

double SimulationReport::speedup_max() const {
  return bound() > 0 ? work / bound() : 1.0;
}

double SimulationReport::bubble() const {
  const double busy = work + recompute;
  return makespan > 0 ? 1.0 - busy / (makespan * static_cast<double>(stages.size())) : 0.0;
}

SimulationReport Simulate(const SearchSpace& space, const CostTable& costs,
                          const Partition& partition, const Policy& policy, const Sampler& sampler,
                          const SimulationOptions& options,
                          const std::function<void(std::int64_t)>& finished) {
  VERBATIM_CHECK(options.subnets >= 1 && options.microbatches >= 1);
  return Simulator(space, costs, partition, policy, sampler, options).Run(finished);
}

}  // namespace verbatim
