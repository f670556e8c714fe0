// What `verbatim show` prints: the whole run, one subnet, or one layer's lineage. Each view as text
// or as a JSON object (docs/cli.md states the fields).
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "store/reader.h"

namespace verbatim {

/// A version as a table's cell: "7", or "initial" for -1.
std::string VersionText(std::int64_t seq);

enum class ShowFormat { kText, kJson };

/// `record` is the path as typed. Errors are the reader's.
Result<std::string> ShowRun(const RecordReader& reader, const std::string& record,
                            ShowFormat format);

/// kUsage where the record has no subnet `seq`.
Result<std::string> ShowSubnet(const RecordReader& reader, const std::string& record,
                               std::int64_t seq, ShowFormat format);

/// Of a step run; `step` is the trainer's own number. kUsage where the record has no such step.
Result<std::string> ShowStep(const RecordReader& reader, const std::string& record,
                             std::int64_t step, ShowFormat format);
/// The row of a step run with that number; kUsage where there is none.
Result<std::int64_t> FindStep(const RecordReader& reader, const std::string& record,
                              std::int64_t step);

/// `layer` is a name ("block3.1") or an id ("17"); kUsage where there is none such.
Result<std::string> ShowLayer(const RecordReader& reader, const std::string& record,
                              const std::string& layer, ShowFormat format);

}  // namespace verbatim
