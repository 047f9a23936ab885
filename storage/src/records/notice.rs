//! Notices, and which of them each user has dismissed.

use domain::notice::{DismissedNotices, Notice};

use crate::record::{Keys, Record, Sharing};

impl Record for Notice {
    const COLLECTION: &'static str = "notices";
    const SHARING: Sharing = Sharing::AllNodes;

    fn id(&self) -> u32 {
        self.id
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("notification_key", &self.key);
    }
}

impl Record for DismissedNotices {
    const COLLECTION: &'static str = "dismissed_notices";
    const SHARING: Sharing = Sharing::AllNodes;

    fn id(&self) -> u32 {
        self.user.0
    }
}
