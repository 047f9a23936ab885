//! How a stream is handed on.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::StreamProfileId;

/// A stream profile: a named way to hand streams on, which streams and channels refer to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamProfile {
    pub id: StreamProfileId,
    /// Unique.
    pub name: String,
    pub delivery: Delivery,
    /// Sent to the provider in place of what account and stream say.
    #[serde(default)]
    pub user_agent: Option<String>,
    /// Streams and channels that refer to an inactive one are handed on as if they referred to none.
    pub is_active: bool,
    /// One of ours, which can neither be changed nor deleted.
    #[serde(default)]
    pub locked: bool,
}

impl StreamProfile {
    /// The profiles that every store begins with. Their ids never change.
    pub fn built_in() -> [Self; 2] {
        let profile = |id, name: &str, delivery| Self {
            id: StreamProfileId(id),
            name: name.to_owned(),
            delivery,
            user_agent: None,
            is_active: true,
            locked: true,
        };
        [profile(1, "Proxy", Delivery::Proxy), profile(2, "Redirect", Delivery::Redirect)]
    }
}

/// What a viewer gets of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// The gateway reads the stream once and serves it to all.
    #[default]
    Proxy,
    /// The viewer is sent to the provider's address and the gateway is out of the way, as are its limits.
    Redirect,
}

impl Delivery {
    /// The name that the interface and its events use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Proxy => "proxy",
            Self::Redirect => "redirect",
        }
    }
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
