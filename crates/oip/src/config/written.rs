//! Configurations as somebody wrote them.

use std::sync::OnceLock;

use prost_reflect::prost_types::{FileDescriptorSet, OneofDescriptorProto};
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};

use prost::Message;

use crate::proto::{DESCRIPTORS, ModelConfig};

const MAX_BATCH: &str = "max_batch_size";

/// A configuration, and what the message alone cannot tell: whether a largest batch of 0, a model without batches, is
/// what somebody wrote or what nobody wrote.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WrittenConfig {
    /// The configuration.
    pub config: ModelConfig,
    /// Whether it says how large batches may be.
    pub says_max_batch: bool,
}

impl WrittenConfig {
    /// The message to parse a configuration as; `None` if the program was built without its messages.
    pub fn descriptor() -> Option<MessageDescriptor> {
        static MESSAGE: OnceLock<Option<MessageDescriptor>> = OnceLock::new();
        MESSAGE.get_or_init(descriptor).clone()
    }

    /// What was parsed as [`descriptor`](Self::descriptor) says.
    pub fn of(message: &DynamicMessage) -> Result<WrittenConfig, prost::DecodeError> {
        let says_max_batch = message.has_field_by_name(MAX_BATCH);
        Ok(WrittenConfig { config: message.transcode_to()?, says_max_batch })
    }
}

/// A configuration that somebody made up as a message: a largest batch of 0 cannot be told from none.
impl From<ModelConfig> for WrittenConfig {
    fn from(config: ModelConfig) -> WrittenConfig {
        WrittenConfig { says_max_batch: config.max_batch_size != 0, config }
    }
}

/// The message as Triton defines it, but with a largest batch that may be absent, as if it were `optional` there.
fn descriptor() -> Option<MessageDescriptor> {
    let mut files = FileDescriptorSet::decode(DESCRIPTORS).ok()?;
    let messages = files.file.iter_mut().flat_map(|file| &mut file.message_type);
    let config = messages.into_iter().find(|message| message.name() == "ModelConfig")?;
    let field = config.field.iter_mut().find(|field| field.name() == MAX_BATCH)?;
    field.proto3_optional = Some(true);
    field.oneof_index = i32::try_from(config.oneof_decl.len()).ok();
    let name = Some(format!("_{MAX_BATCH}"));
    config.oneof_decl.push(OneofDescriptorProto { name, ..OneofDescriptorProto::default() });
    DescriptorPool::from_file_descriptor_set(files).ok()?.get_message_by_name("inference.ModelConfig")
}
