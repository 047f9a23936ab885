//! Recordings of channels.

use domain::recording::{LeftFiles, Recording};

use crate::record::{Keys, Record, Sharing};

impl Record for Recording {
    const COLLECTION: &'static str = "recordings";
    const SHARING: Sharing = Sharing::AllNodes;

    fn id(&self) -> u32 {
        self.id.0
    }

    fn keys(&self, keys: &mut Keys) {
        keys.plain("channel", self.channel.0.to_be_bytes());
        if let Some(owner) = self.owner {
            keys.plain("owner", owner.0.to_be_bytes());
        }
    }
}

impl Record for LeftFiles {
    const COLLECTION: &'static str = "recording_left_files";
    const SHARING: Sharing = Sharing::AllNodes;

    fn id(&self) -> u32 {
        self.id
    }

    fn keys(&self, _: &mut Keys) {}
}
