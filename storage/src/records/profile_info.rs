//! What panels say about the logins of account profiles, under the id of the profile.

use domain::panel::ProfileInfo;

use crate::record::{Keys, Record, Sharing};

impl Record for ProfileInfo {
    const COLLECTION: &'static str = "profile_infos";
    const SHARING: Sharing = Sharing::FullNodes;
    /// The answers of panels contain user names.
    const SEALED: bool = true;
    /// The next check writes it again.
    const MAY_BE_MISSED: bool = true;

    fn id(&self) -> u32 {
        self.profile.0
    }

    fn keys(&self, keys: &mut Keys) {
        keys.plain("account", self.account.0.to_be_bytes());
    }
}
