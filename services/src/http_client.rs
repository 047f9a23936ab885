//! The HTTP client of this gateway.

use actors::{Fetch, FetchError, FetchLimits};
use config::Config;

/// Builds the HTTP client for everything that is downloaded rather than streamed.
///
/// # Errors
/// The certificates of the system cannot be used.
pub fn fetch(config: &Config) -> Result<Fetch, FetchError> {
    let limits = FetchLimits {
        bytes_max: config.limits.playlist_bytes_max,
        total_timeout: config.limits.playlist_timeout,
        ..FetchLimits::default()
    };
    let fetch = Fetch::new(limits)?;
    Ok(match &config.user_agent {
        Some(agent) => fetch.known_as(agent),
        None => fetch,
    })
}
