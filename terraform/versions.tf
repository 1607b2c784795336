terraform {
  # 1.9 is the first in which a validation may look at more than its own variable.
  required_version = ">= 1.9"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.100, < 7"
    }
  }
}
