// One of two records that are compared, and where it is being read.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "store/reader.h"
#include "verify/examine.h"
#include "verify/verdict.h"

namespace verbatim {

/// Reads a record once and examines it on the way. Not thread-safe.
class DiffSide {
 public:
  /// Keeps a reference to `reader`. `check`: what the side is called.
  DiffSide(const char* check, const RecordReader& reader, std::string path)
      : check_(check),
        reader_(reader),
        path_(std::move(path)),
        examination_(reader, path_, RecordExamination::FileCheck::kLeaveOut) {}

  const char* check() const { return check_; }
  const RecordReader& reader() const { return reader_; }
  const std::string& path() const { return path_; }
  const LayerTable* table() const { return examination_.table(); }
  const RunInfo& run() const { return verdict().run; }
  /// Of the examination, so far or at its end.
  const Verdict& verdict() const { return is_finished_ ? verdict_ : examination_.verdict(); }

  /// Before Next. What cannot be read is found by the examination.
  void Open();
  /// The next subnet, after looking at it; null after the last, or where none can be read.
  const SubnetRow* Next();
  /// Call once, at the end.
  void Finish() {
    verdict_ = examination_.Finish();
    is_finished_ = true;
  }

 private:
  const char* check_;
  const RecordReader& reader_;
  std::string path_;
  RecordExamination examination_;
  std::unique_ptr<SubnetCursor> cursor_;
  Verdict verdict_;
  bool is_finished_ = false;
};

/// Ends both examinations and begins the verdict of a diff with what they found: whose records,
/// how they stand, and whether one is damaged.
void AddRecords(DiffSide& a, DiffSide& b, Verdict& verdict);

}  // namespace verbatim
