from .base import (
    SCALES as SCALES,
    Arrays as Arrays,
    Blocks as Blocks,
    FeatureSpec as FeatureSpec,
    RandomFeatures as RandomFeatures,
    Sample as Sample,
)
from .completion import (
    WHOLE as WHOLE,
    Completion as Completion,
)
from .fourier import (
    FourierSpec as FourierSpec,
    RandomFourierFeatures as RandomFourierFeatures,
)
from .frequencies import (
    draw_frequencies as draw_frequencies,
)
from .kernel_profiles import (
    LAPLACIAN as LAPLACIAN,
    kernel_profile as kernel_profile,
)
from .kernels.fourier_kernels import (
    sine_cosine as sine_cosine,
)
from .kernels.hadamard_kernels import (
    walsh_hadamard_rows as walsh_hadamard_rows,
)
from .kernels.landmark_kernels import (
    decay as decay,
)
from .learned import (
    LearnedFourierFeatures as LearnedFourierFeatures,
)
from .learned_spec import (
    LearnedSpec as LearnedSpec,
)
from .nystroem import (
    NystroemFeatures as NystroemFeatures,
    NystroemSpec as NystroemSpec,
)
from .registered import (
    DEFAULT_FEATURES as DEFAULT_FEATURES,
    RANDOM_FEATURES as RANDOM_FEATURES,
    named_features as named_features,
    random_features as random_features,
)
from .spectrum_evidence import (
    SpectrumSums as SpectrumSums,
)
