#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "digest_value.h"
#include "raise.h"
#include "store/reader.h"

namespace nb = nanobind;

namespace verbatim::python {
namespace {

const ReadOptions kEverything = {.accesses = true, .activations = true, .activities = false};

nb::object HexOrNone(const std::optional<Digest>& digest) {
  if (!digest) return nb::none();
  return nb::str(ToHex(*digest).c_str());
}

nb::dict AccessDict(const AccessRow& access) {
  nb::dict dict;
  dict["layer"] = access.layer;
  dict["weights"] = HexOrNone(access.weights);
  dict["optimizer_state"] = HexOrNone(access.optimizer_state);
  dict["gradients"] = HexOrNone(access.gradients);
  return dict;
}

nb::dict FactsDict(const StepFacts& facts) {
  nb::dict dict;
  dict["step"] = facts.step;
  dict["random_state"] = HexOrNone(facts.random_state);
  dict["settings"] = SettingsToJson(facts.settings);
  dict["outside"] = facts.outside;
  nb::list parts;
  for (const Digest& part : facts.parts) parts.append(ToHex(part));
  dict["parts"] = parts;
  return dict;
}

nb::dict StepDict(const SubnetRow& row) {
  nb::dict dict = FactsDict(row.step.value_or(StepFacts{}));
  dict["seq"] = row.seq;
  dict["loss_bits"] = row.loss_bits;
  dict["batch"] = ToHex(row.batch_digest);
  nb::list accesses, captured;
  for (const AccessRow& access : row.accesses) accesses.append(AccessDict(access));
  for (const ActivationRow& one : row.activations) {
    captured.append(nb::make_tuple(one.position, one.microbatch, ToHex(one.digest)));
  }
  dict["accesses"] = accesses;
  dict["captured"] = captured;
  return dict;
}

// Reads ranges of rows rather than through one cursor, so that a caller who stops in the middle
// leaves nothing open.
class Reading {
 public:
  explicit Reading(const std::string& path) : reader_(ValueOrRaise(RecordReader::Open(path))) {
    if (reader_->Kind() != RunKind::kSteps) {
      Raise({ErrorKind::kUsage, fmt::format("{} records the training of a supernet", path),
             "This package reads step runs; look at it with: verbatim show " + path});
    }
  }

  nb::dict Run() const {
    const RunInfo run = ValueOrRaise(reader_->Run());
    nb::dict dict;
    dict["spec"] = run.spec_json;
    dict["status"] = ToString(run.status);
    dict["status_detail"] = run.status_detail;
    dict["record_level"] = run.record_level;
    dict["device"] = run.device;
    dict["started_utc"] = run.started_utc;
    dict["ended_utc"] = run.ended_utc;
    dict["command_line"] = run.command_line;
    dict["tool_version"] = run.tool_version;
    dict["steps_planned"] = run.subnets_planned;
    return dict;
  }

  nb::dict Environment() const {
    nb::dict dict;
    for (const EnvironmentRow& row : ValueOrRaise(reader_->Environment())) {
      dict[row.key.c_str()] = row.value;
    }
    return dict;
  }

  nb::list Layers() const {
    nb::list layers;
    for (const LayerRow& row : ValueOrRaise(reader_->Layers())) {
      layers.append(
          nb::make_tuple(row.layer, row.name, row.op, row.versioned, ToHex(row.initial_digest)));
    }
    return layers;
  }

  std::int64_t StepCount() const { return ValueOrRaise(reader_->SubnetCount()); }

  nb::object Step(std::int64_t seq) const {
    const std::optional<SubnetRow> row = ValueOrRaise(reader_->Subnet(seq, kEverything));
    if (!row) return nb::none();
    return StepDict(*row);
  }

 private:
  std::unique_ptr<RecordReader> reader_;
};

}  // namespace

void BindReader(nb::module_& module) {
  nb::class_<Reading>(module, "Reading")
      .def(nb::init<const std::string&>(), nb::arg("path"))
      .def("run", &Reading::Run)
      .def("environment", &Reading::Environment)
      .def("layers", &Reading::Layers)
      .def("step_count", &Reading::StepCount)
      .def("step", &Reading::Step, nb::arg("seq"));
}

}  // namespace verbatim::python
