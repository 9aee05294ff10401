//! Devices as people name them.

use std::fmt;
use std::str::FromStr;

use downbeat_profile::{DeviceClass, DeviceClassError};
use serde::Deserialize;

use crate::subcluster::{Subcluster, SubclusterError};

/// Devices of one kind: `cpu`, `cpu:2`, `cuda:0`, `tensorrt:1`, `emulated:8`, each with an optional class and
/// sub-cluster: `cuda:0@h200/7g#vision`. `none` stands for no device.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct DeviceSpec {
    /// What they are.
    pub kind: DeviceKind,
    /// How many.
    pub count: u32,
    /// Devices of one class share latency profiles.
    pub class: DeviceClass,
    /// They serve the models of this sub-cluster only; `None` for all models that are in none.
    pub subcluster: Option<Subcluster>,
}

/// What a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// ONNX Runtime on the CPU.
    Cpu,
    /// ONNX Runtime with CUDA on the GPU of this number.
    Cuda(u32),
    /// ONNX Runtime with TensorRT on the GPU of this number.
    TensorRt(u32),
    /// Takes as long as a profile says, and computes nothing.
    Emulated,
}

impl DeviceKind {
    /// As people write it; also the class of such devices unless another is named.
    fn name(self) -> &'static str {
        match self {
            DeviceKind::Cpu => "cpu",
            DeviceKind::Cuda(_) => "cuda",
            DeviceKind::TensorRt(_) => "tensorrt",
            DeviceKind::Emulated => "emulated",
        }
    }
}

/// Emulated devices in one worker, each a thread that sleeps.
const EMULATED_MAX: u32 = 4096;

/// Workers on the CPU: more than any machine has cores for.
const CPU_MAX: u32 = 256;

/// Why a name is not that of a device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceSpecError {
    /// Not one of the kinds.
    #[error(
        "{0:?} is not a device: use cpu, cpu:2 (two workers), cuda:0, tensorrt:0 or emulated:8, each with an optional @class \
         and #subcluster"
    )]
    Kind(String),
    /// Not a number, or none that makes sense.
    #[error("{number:?} in the device {name:?} is not a number{range}")]
    Number {
        /// The device as written.
        name: String,
        /// Its number as written.
        number: String,
        /// What is allowed.
        range: String,
    },
    /// The class is none.
    #[error(transparent)]
    Class(#[from] DeviceClassError),
    /// The sub-cluster is none.
    #[error(transparent)]
    Subcluster(#[from] SubclusterError),
}

impl FromStr for DeviceSpec {
    type Err = DeviceSpecError;

    fn from_str(name: &str) -> Result<DeviceSpec, DeviceSpecError> {
        let (device, subcluster) = match name.split_once('#') {
            Some((device, subcluster)) => (device, Some(subcluster.parse()?)),
            None => (name, None),
        };
        let (device, class) = match device.split_once('@') {
            Some((device, class)) => (device, Some(class)),
            None => (device, None),
        };
        let (kind, number) = match device.split_once(':') {
            Some((kind, number)) => (kind, Some(number)),
            None => (device, None),
        };
        let number_in = |range: std::ops::RangeInclusive<u32>, default: u32| match number {
            None => Ok(default),
            Some(text) => text.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| {
                let range = format!(" from {} to {}", range.start(), range.end());
                DeviceSpecError::Number { name: name.to_owned(), number: text.to_owned(), range }
            }),
        };
        let (kind, count) = match kind {
            "cpu" => (DeviceKind::Cpu, number_in(1..=CPU_MAX, 1)?),
            "cuda" => (DeviceKind::Cuda(number_in(0..=1023, 0)?), 1),
            "tensorrt" => (DeviceKind::TensorRt(number_in(0..=1023, 0)?), 1),
            "emulated" => (DeviceKind::Emulated, number_in(1..=EMULATED_MAX, 1)?),
            "none" => (DeviceKind::Cpu, 0),
            _ => return Err(DeviceSpecError::Kind(name.to_owned())),
        };
        Ok(DeviceSpec { kind, count, class: class.unwrap_or(kind.name()).parse()?, subcluster })
    }
}

impl TryFrom<String> for DeviceSpec {
    type Error = DeviceSpecError;

    fn try_from(name: String) -> Result<DeviceSpec, DeviceSpecError> {
        name.parse()
    }
}

impl DeviceSpec {
    /// What one worker process takes of these devices: emulated ones all, of the others each one.
    pub(crate) fn workers(&self) -> Vec<DeviceSpec> {
        match self.kind {
            DeviceKind::Emulated => vec![self.clone()],
            _ => vec![DeviceSpec { count: 1, ..self.clone() }; self.count as usize],
        }
    }

    /// Whether these devices only take time.
    pub fn is_emulated(&self) -> bool {
        self.kind == DeviceKind::Emulated
    }

    /// The name of one of the devices.
    pub(crate) fn device_name(&self, index: u32) -> String {
        match self.kind {
            DeviceKind::Cpu | DeviceKind::Emulated => format!("{}:{index}", self.kind.name()),
            DeviceKind::Cuda(number) | DeviceKind::TensorRt(number) => {
                format!("{}:{number}", self.kind.name())
            }
        }
    }
}

impl fmt::Display for DeviceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind.name();
        match self.kind {
            DeviceKind::Cpu if self.count == 0 => return f.write_str("none"),
            DeviceKind::Cpu | DeviceKind::Emulated if self.count == 1 => f.write_str(kind)?,
            DeviceKind::Cpu | DeviceKind::Emulated => write!(f, "{kind}:{}", self.count)?,
            DeviceKind::Cuda(number) | DeviceKind::TensorRt(number) => write!(f, "{kind}:{number}")?,
        }
        if self.class.as_str() != kind {
            write!(f, "@{}", self.class)?;
        }
        self.subcluster.iter().try_for_each(|subcluster| write!(f, "#{subcluster}"))
    }
}

#[cfg(test)]
mod tests;
