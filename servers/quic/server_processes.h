// One process for each server, forked when all of them share is in memory.

#ifndef EYELEVEL_SERVERS_QUIC_SERVER_PROCESSES_H_
#define EYELEVEL_SERVERS_QUIC_SERVER_PROCESSES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace eyelevel {

// Runs `serve` with each server's place in `names`, in a process of its own,
// which must end in order at SIGTERM. SIGTERM and SIGINT end all servers, in
// order, and so does the first that ends by itself: the error is its own, or
// says how the server of that name was ended. They end with this process,
// whatever ends that.
//
// Not several servers in one process, though that would be smaller: quiche's
// event loop sleeps for whole milliseconds, so that a packet for one server
// would wake the others' pacing early, and connections to several servers would
// take turns on one core.
absl::Status RunServers(const std::vector<std::string>& names,
                        absl::FunctionRef<absl::Status(size_t)> serve);

}  // namespace eyelevel

#endif  // EYELEVEL_SERVERS_QUIC_SERVER_PROCESSES_H_
