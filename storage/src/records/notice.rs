//! Notices, and which of them each user has dismissed.

use domain::notice::{DismissedNotices, Notice};

use crate::record::{Keys, Record};

impl Record for Notice {
    const COLLECTION: &'static str = "notices";

    fn id(&self) -> u32 {
        self.id
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("notification_key", &self.key);
    }
}

impl Record for DismissedNotices {
    const COLLECTION: &'static str = "dismissed_notices";

    fn id(&self) -> u32 {
        self.user.0
    }
}
