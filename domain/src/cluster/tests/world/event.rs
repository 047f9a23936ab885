//! What happens in a schedule, in the order of its times.

use std::rc::Rc;

use super::faults::Fault;
use super::network::{Reply, Sender, Write};
use crate::cluster::NodeInput;
use crate::cluster::record::{ClusterRecord, LeaseId, MemberRecord, ProcessId, RecordKey, Revision};

/// Anything that happens at a time.
#[derive(Debug)]
pub(super) enum Event {
    /// A write reaches the engine.
    Apply {
        write: Rc<Write>,
        reply: Reply,
    },
    /// A read reaches the engine.
    Serve {
        from: Sender,
        key: RecordKey,
    },
    /// An input reaches a process.
    Input {
        to: Sender,
        input: Box<NodeInput>,
    },
    /// A record reaches a process, over a connection that may be gone.
    Deliver {
        to: Sender,
        key: RecordKey,
        revision: Revision,
        record: Option<Rc<ClusterRecord>>,
        is_reply: bool,
    },
    Tick {
        machine: usize,
        process: ProcessId,
    },
    /// A machine connects to the engine again.
    Connect(usize),
    NewSession(usize),
    EndSession {
        machine: usize,
        process: ProcessId,
        lease: u64,
    },
    SocketClosed {
        machine: usize,
        process: ProcessId,
        lease: u64,
    },
    AskedToYield {
        machine: usize,
        lease: LeaseId,
        from: Sender,
        asked_by: u64,
    },
    PullTried {
        machine: usize,
        process: ProcessId,
        from: usize,
        epoch: u64,
        is_last: bool,
    },
    Fault {
        fault: Fault,
        machine: usize,
        is_over: bool,
    },
    /// A process that was handed over opens a connection again with the lease of one that it lost.
    Reopen {
        machine: usize,
        process: ProcessId,
        lease: u64,
    },
    /// A process that was handed over has nothing left to do.
    OldEnded {
        machine: usize,
        process: ProcessId,
    },
    /// The guard looks at a process that was frozen at this time.
    Guard {
        machine: usize,
        process: ProcessId,
        frozen_at: u64,
    },
    /// The guard of a process that has ended reads the record of its node.
    GuardReads {
        machine: usize,
        process: ProcessId,
        n_attempts_left: u32,
    },
    /// The guard gets the record that it has read, and swaps it.
    GuardSwaps {
        machine: usize,
        process: ProcessId,
        n_attempts_left: u32,
        n_restarts: u64,
        read: (Revision, MemberRecord),
    },
    Start(usize),
    /// A machine asks for a connection for the channel, if it is the origin and has none.
    NeedsSource(usize),
    /// A look at the viewers.
    Look,
    /// The faults are over; whether everything has recovered.
    Probe,
    /// The end, if everything works by now.
    Check {
        until: u64,
    },
}

/// Returns the machine whose process handles an event.
pub(super) fn receiver(event: &Event) -> Option<usize> {
    match event {
        Event::Input { to, .. } | Event::Deliver { to, .. } => Some(to.machine),
        Event::Tick { machine, .. }
        | Event::Connect(machine)
        | Event::NeedsSource(machine)
        | Event::NewSession(machine)
        | Event::EndSession { machine, .. }
        | Event::SocketClosed { machine, .. }
        | Event::AskedToYield { machine, .. }
        | Event::Reopen { machine, .. }
        | Event::OldEnded { machine, .. }
        | Event::PullTried { machine, .. } => Some(*machine),
        _ => None,
    }
}
