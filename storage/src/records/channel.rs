//! Channels.

use domain::channel::Channel;

use crate::record::{Keys, Record, Sharing};

impl Record for Channel {
    const COLLECTION: &'static str = "channels";
    const SHARING: Sharing = Sharing::AllNodes;
    /// Its level and its group decide who may watch it.
    const GRANTS_ACCESS: bool = true;

    fn id(&self) -> u32 {
        self.id.0
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("uuid", self.uuid.as_bytes());
        if let Some(number) = self.number {
            keys.unique("number", number.to_string());
        }
        if let Some(group) = self.group {
            keys.plain("group", group.0.to_be_bytes());
        }
        if let Some(logo) = self.logo_id {
            keys.plain("logo", logo.0.to_be_bytes());
        }
        if let Some(profile) = self.stream_profile {
            keys.plain("stream_profile", profile.0.to_be_bytes());
        }
        if let Some(auto) = &self.auto {
            keys.plain("auto_account", auto.account.0.to_be_bytes());
        }
        for stream in &self.streams {
            keys.plain("stream", stream.0.to_be_bytes());
        }
    }
}
