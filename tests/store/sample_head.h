// A head with every field.
#pragma once

#include "store/head.h"
#include "tests/store/sample_record.h"

namespace verbatim::test {

inline Head SampleHead(std::int64_t subnets = 300) {
  Head head;
  head.subnets = subnets;
  head.content_root = SampleHash(1);
  head.layout_root = SampleHash(2);
  head.start = SampleHash(3);
  head.resumptions = 2;
  head.circumstances = SampleHash(4);
  head.end = SampleHash(5);
  head.created_utc = "2026-01-31T12:00:00Z";
  return head;
}

}  // namespace verbatim::test
