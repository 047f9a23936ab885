//! `device.xml`: the description of an emulated tuner for UPnP (Device Architecture 1.0, section 2.1).

use domain::discovery::ssdp::DEVICE_TYPE;
use domain::tuner::{MODEL_NUMBER, device_uuid};
use route_frame::call::Call;
use route_frame::route::Content;
use server::reply::Refusal;

use super::device::{Device, DevicePath};
use super::{Xml, document, push_element};

pub(super) async fn xml(call: Call, at: DevicePath) -> Result<Content<Xml>, Refusal> {
    Ok(document(description(&at.device(&call)?)))
}

fn description(device: &Device) -> String {
    let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
        <root xmlns=\"urn:schemas-upnp-org:device-1-0\">\n\
        <specVersion><major>1</major><minor>0</minor></specVersion>\n"
        .to_owned();
    let uuid = format!("uuid:{}", device_uuid(&device.id));
    push_element(&mut text, "URLBase", &device.base_url);
    text.push_str("\n<device>\n");
    for (name, value) in [
        ("deviceType", DEVICE_TYPE),
        ("friendlyName", &device.name),
        ("manufacturer", "Headwater"),
        ("modelName", MODEL_NUMBER),
        ("modelNumber", MODEL_NUMBER),
        ("serialNumber", &device.id),
        ("UDN", &uuid),
    ] {
        push_element(&mut text, name, value);
        text.push('\n');
    }
    text.push_str("</device>\n</root>\n");
    text
}

#[cfg(test)]
mod tests {
    use domain::tuner::DeviceKey;

    use super::*;

    #[test]
    fn a_description_escapes_the_names_of_the_device() {
        let device = Device {
            key: DeviceKey::Main,
            id: "12345678".to_owned(),
            name: "Tom & \"Jerry\" <TV>\u{1}".to_owned(),
            tuner_count: 1,
            lineup: None,
            output_profile: None,
            base_url: "http://h:9191/tuner".to_owned(),
        };
        let text = description(&device);
        assert!(text.starts_with("<?xml "), "{text}");
        for part in [
            "<friendlyName>Tom &amp; &quot;Jerry&quot; &lt;TV&gt; </friendlyName>",
            "<URLBase>http://h:9191/tuner</URLBase>",
            "<serialNumber>12345678</serialNumber>",
            "<UDN>uuid:",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
