//! Stream profiles.

use domain::stream_profile::StreamProfile;

use crate::record::{Keys, Record, Sharing};

impl Record for StreamProfile {
    const COLLECTION: &'static str = "stream_profiles";
    const SHARING: Sharing = Sharing::FullNodes;
    /// Arguments and user agents may contain credentials of a provider.
    const SEALED: bool = true;
    const WAS_PLAIN: bool = true;

    fn id(&self) -> u32 {
        self.id.0
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("name", &self.name);
    }
}
