//! The clock on the wall, for what people read: when something happened or was changed. What is waited for and measured
//! goes by [`tokio::time::Instant`], which nobody sets.

use std::time::SystemTime;

/// Milliseconds since 1970, by the machine's clock; 0 where that stands before.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
