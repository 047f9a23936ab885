use domain::vod::TitleFavorites;

use crate::record::Record;

impl Record for TitleFavorites {
    const COLLECTION: &'static str = "vod_favorites";

    fn id(&self) -> u32 {
        self.user.0
    }
}
