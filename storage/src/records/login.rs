//! Logins of users on devices.

use domain::login::DeviceLogin;

use crate::record::{Keys, Record, Sharing};

impl Record for DeviceLogin {
    const COLLECTION: &'static str = "logins";
    const SHARING: Sharing = Sharing::AllNodes;
    /// Addresses and programs of users.
    const SEALED: bool = true;
    /// A login that is missing has ended, and its device logs in again.
    const MAY_BE_MISSED: bool = true;

    fn id(&self) -> u32 {
        self.id.0
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("key", self.key.as_bytes());
        keys.plain("user", self.user.0.to_be_bytes());
        if let Some(browser) = &self.browser {
            keys.plain("cookie", browser.digest);
            if let Some(previous) = browser.previous {
                keys.plain("cookie", previous);
            }
        }
    }
}
