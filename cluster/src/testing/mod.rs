//! For the tests of other crates: an engine in memory with faults, and NATS servers that can be stopped.

mod memory;
mod servers;

pub use self::memory::{MemoryEngine, MemoryStore, WriteFault};
pub use self::servers::NatsServers;
