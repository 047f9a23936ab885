//! Parts of the refreshes that live longer than one refresh.

use super::schedules_direct::SchedulesDirect;
use super::stream::StreamGuides;
use crate::events::Events;

/// The state that refreshes of some kinds share. Clones share it.
#[derive(Clone, Default)]
pub struct GuideServices {
    /// Logins at the service.
    pub schedules_direct: SchedulesDirect,
    /// Guide data of streams that play.
    pub(crate) stream_guides: StreamGuides,
    /// Where refreshes are reported; the event is stored with the guide.
    pub(crate) events: Option<Events>,
}
