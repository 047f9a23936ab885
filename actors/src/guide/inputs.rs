//! Chooses the input of a guide source by its kind.

use domain::guide::source::GuideSourceKind;

use super::error::GuideError;
use super::input::{GuideContext, GuideInput};
use super::portal::PortalInput;
use super::schedules_direct::SchedulesDirectInput;
use super::stream::StreamInput;
use super::xmltv::XmltvInput;

/// Returns the input of a source.
///
/// # Errors
/// Programmes of this kind are not fetched.
pub(super) fn input_of(context: GuideContext) -> Result<Box<dyn GuideInput>, GuideError> {
    match context.source.kind {
        GuideSourceKind::Xmltv => Ok(Box::new(XmltvInput::new(context))),
        GuideSourceKind::Panel => Ok(match PortalInput::from_context(&context) {
            Some(input) => Box::new(input),
            None => Box::new(XmltvInput::new(context)),
        }),
        GuideSourceKind::SchedulesDirect => Ok(Box::new(SchedulesDirectInput::new(context))),
        GuideSourceKind::Stream => Ok(Box::new(StreamInput::new(context))),
        GuideSourceKind::Generated | GuideSourceKind::Written => Err(GuideError::NoLocation),
    }
}
