//! Output profiles.

use domain::output_profile::OutputProfile;

use crate::record::{Keys, Record, Sharing};

impl Record for OutputProfile {
    const COLLECTION: &'static str = "output_profiles";
    const SHARING: Sharing = Sharing::AllNodes;
    /// Arguments of programs may contain credentials.
    const SEALED: bool = true;

    fn id(&self) -> u32 {
        self.id.0
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("name", &self.name);
        if let Some(profile) = self.stream_profile {
            keys.plain("stream_profile", profile.0.to_be_bytes());
        }
    }
}
