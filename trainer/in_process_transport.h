// Stages of one process hand each other tensors by reference.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "trainer/transport.h"

namespace verbatim {

class InProcessTransport : public Transport {
 public:
  explicit InProcessTransport(int stages) : mailboxes_(static_cast<std::size_t>(stages)) {}

  void Send(int stage, const Task& task, HandedTensor tensor) override;
  HandedTensor Receive(int stage, const Task& task) override;

 private:
  struct Mailbox {
    std::mutex mutex;
    std::map<Task, HandedTensor, TaskOrder> tensors;
  };
  std::vector<Mailbox> mailboxes_;  ///< by receiving stage
};

}  // namespace verbatim
