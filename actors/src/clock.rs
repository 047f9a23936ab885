//! The wall clock, for timestamps that people read. Waiting and measuring uses [`tokio::time::Instant`], which nobody
//! can set.

use std::time::SystemTime;

/// Returns the milliseconds since 1970 by the system clock; 0 for earlier times.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
