//! How a stream is handed on, and whose setting wins.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a viewer gets of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamProfile {
    /// The gateway reads the stream once and serves it to all.
    #[default]
    Proxy,
    /// The viewer is sent to the provider's address and the gateway is out of the way, as are its limits.
    Redirect,
}

impl StreamProfile {
    /// The name that the interface and its events use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Proxy => "proxy",
            Self::Redirect => "redirect",
        }
    }
}

impl fmt::Display for StreamProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The profile that counts: the stream's own, else the channel's, else the default.
pub fn in_force(
    stream: Option<StreamProfile>,
    channel: Option<StreamProfile>,
    default: StreamProfile,
) -> StreamProfile {
    stream.or(channel).unwrap_or(default)
}

#[cfg(test)]
mod tests {
    use super::StreamProfile::{Proxy, Redirect};
    use super::*;

    #[test]
    fn the_stream_decides_before_the_channel_and_the_channel_before_the_default() {
        assert_eq!(in_force(Some(Proxy), Some(Redirect), Redirect), Proxy);
        assert_eq!(in_force(None, Some(Redirect), Proxy), Redirect);
        assert_eq!(in_force(None, None, Redirect), Redirect);
    }
}
