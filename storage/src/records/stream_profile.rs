//! Stream profiles.

use domain::stream_profile::StreamProfile;

use crate::record::{Keys, Record};

impl Record for StreamProfile {
    const COLLECTION: &'static str = "stream_profiles";
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
