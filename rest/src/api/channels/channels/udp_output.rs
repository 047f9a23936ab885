//! The output of a channel as datagrams, in bodies and answers.

use actors::UdpOutputState;
use domain::udp_output::{
    TTL_DEFAULT, UdpOutput, UdpOutputAddress, UdpOutputError, UdpOutputMode, is_interface,
};
use resource_derive::{Body, View};
use route_frame::call::Call;
use route_frame::field::{Field, Kind};
use route_frame::input::Element;
use route_frame::value::{Readable, Shape};
use serde::Serialize;
use serde_json::Value;
use server::field_errors::FieldErrors;
use server::reply::Refusal;

use super::filters::find_visible;
use crate::api::channels::values::Text;
use crate::choice::{Named, choice};
use crate::context::RestCall;

choice!(UdpOutputMode { Always = "always", Watched = "watched" });

/// Where a channel is sent as datagrams.
#[derive(Clone, Debug, Body)]
#[resource(name = "UdpOutputEdit")]
pub(crate) struct UdpOutputEdit {
    /// A multicast group or a receiver, with its port: `udp://` for plain datagrams, `rtp://` for RTP. The host is an IP
    /// address. Any address can be chosen, also one of the gateway's machine.
    #[field(example = "udp://239.1.2.3:5000")]
    address: AddressValue,
    /// Name or address of the network interface to send on; `null` leaves the choice to the system.
    #[field(example = "eth0")]
    interface: Option<Option<InterfaceValue>>,
    /// Maximum number of routers on the way; 1 by default, which keeps a group in the local network.
    #[field(at_least = 1, at_most = 255, example = "1")]
    ttl: Option<u16>,
    /// `always`, the default: the channel plays for it at all times, and takes a connection. `watched`: while somebody
    /// watches it.
    mode: Option<Named<UdpOutputMode>>,
}

impl Shape for UdpOutputEdit {
    const KIND: Kind = Kind::Record(&UdpOutputEdit::RECORD);
}

impl Readable for UdpOutputEdit {
    fn read(value: &Value, _: &Field) -> Result<Self, String> {
        Self::read_element(value, false).map_err(FieldErrors::first_message)
    }
}

impl From<UdpOutputEdit> for UdpOutput {
    fn from(edit: UdpOutputEdit) -> Self {
        Self {
            address: edit.address.0,
            interface: edit.interface.flatten().map(|it| it.0),
            // At most 255, as the field says.
            ttl: edit.ttl.map_or(TTL_DEFAULT, |it| u8::try_from(it).unwrap_or(u8::MAX)),
            mode: edit.mode.map(|it| it.0).unwrap_or_default(),
        }
    }
}

/// Where a channel is sent as datagrams, and when.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct UdpOutputView {
    /// The multicast group or the receiver.
    #[field(example = "udp://239.1.2.3:5000")]
    address: String,
    /// Name or address of the network interface; `null` leaves the choice to the system.
    #[field(example = "eth0")]
    interface: Option<String>,
    /// Maximum number of routers on the way.
    #[field(example = "1")]
    ttl: u16,
    /// When the channel is sent.
    mode: Named<UdpOutputMode>,
}

impl UdpOutputView {
    pub(super) fn new(output: &UdpOutput) -> Self {
        Self {
            address: output.address.to_string(),
            interface: output.interface.clone(),
            ttl: output.ttl.into(),
            mode: Named(output.mode),
        }
    }
}

/// Whether a channel is sent as datagrams at present.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct UdpOutputStateView {
    /// `idle` without an output, for a disabled channel, and until somebody watches it if the output waits for that;
    /// `starting` until the channel plays; `sending`; `failing` if nothing can be sent.
    #[field(example = "sending")]
    state: &'static str,
    /// Why nothing can be sent; `null` in the other states.
    #[field(example = "the network interface eth7 does not exist, or cannot send this")]
    reason: Option<String>,
}

pub(super) async fn state(call: Call) -> Result<UdpOutputStateView, Refusal> {
    let channel = find_visible(&call, call.id()?)?;
    let (state, reason) = match call.rest().live.udp_outputs.state(channel.uuid) {
        UdpOutputState::Idle => ("idle", None),
        UdpOutputState::Starting => ("starting", None),
        UdpOutputState::Sending => ("sending", None),
        UdpOutputState::Failing(reason) => ("failing", Some(reason)),
    };
    Ok(UdpOutputStateView { state, reason })
}

/// The address of a receiver.
#[derive(Clone, Debug)]
struct AddressValue(UdpOutputAddress);

impl Shape for AddressValue {
    const KIND: Kind = Kind::Text;
}

impl Readable for AddressValue {
    fn read(value: &Value, field: &Field) -> Result<Self, String> {
        let Text(text) = Text::read(value, field)?;
        text.parse().map(Self).map_err(|error: UdpOutputError| error.to_string())
    }
}

/// A network interface. It need not exist yet.
#[derive(Clone, Debug)]
struct InterfaceValue(String);

impl Shape for InterfaceValue {
    const KIND: Kind = Kind::Text;
}

impl Readable for InterfaceValue {
    fn read(value: &Value, field: &Field) -> Result<Self, String> {
        let Text(text) = Text::read(value, field)?;
        let message = "Enter the name of a network interface, such as eth0, or one of its addresses.";
        if is_interface(&text) { Ok(Self(text)) } else { Err(message.to_owned()) }
    }
}
