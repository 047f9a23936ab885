//! Additional emulated tuners.

use domain::tuner::TunerDevice;

use crate::record::{Keys, Record, Sharing};

impl Record for TunerDevice {
    const COLLECTION: &'static str = "tuner_devices";
    const SHARING: Sharing = Sharing::AllNodes;

    fn id(&self) -> u32 {
        self.id.0
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("device_id", &self.device_id);
    }
}
