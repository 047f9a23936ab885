//! Rules that make recordings, and what they remember.

use domain::recording::rules::{RecordingRule, RuleMemory};

use crate::record::{Keys, Record, Sharing};

impl Record for RecordingRule {
    const COLLECTION: &'static str = "recording_rules";
    const SHARING: Sharing = Sharing::AllNodes;

    fn id(&self) -> u32 {
        self.id.0
    }

    fn keys(&self, keys: &mut Keys) {
        if let Some(owner) = self.owner {
            keys.plain("owner", owner.0.to_be_bytes());
        }
    }
}

impl Record for RuleMemory {
    const COLLECTION: &'static str = "recording_rule_memories";
    const SHARING: Sharing = Sharing::AllNodes;

    fn id(&self) -> u32 {
        self.id.0
    }

    fn keys(&self, _: &mut Keys) {}
}
