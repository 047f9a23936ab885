use domain::vod::TitleFavorites;

use crate::record::{Record, Sharing};

impl Record for TitleFavorites {
    const COLLECTION: &'static str = "vod_favorites";
    const SHARING: Sharing = Sharing::AllNodes;

    fn id(&self) -> u32 {
        self.user.0
    }
}
