# A bucket, its keys, and the three roles that a store needs: one that archives, one that restores, one that administers.

terraform {
  required_version = ">= 1.9"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.100, < 7"
    }
  }
}

provider "aws" {
  region = "eu-central-1"
}

module "store" {
  source = "../.."

  bucket                 = var.bucket
  break_glass_recipients = var.break_glass_recipients

  principals = {
    archiver      = [var.archiving]
    restorer      = [var.restoring]
    administrator = [var.administering]
  }
}

variable "bucket" {
  description = "Name of the bucket that is made."
  type        = string
}

variable "break_glass_recipients" {
  description = "age recipients whose identities are kept offline."
  type        = list(string)
}

variable "archiving" {
  description = "ARN of who archives."
  type        = string
}

variable "restoring" {
  description = "ARN of who restores."
  type        = string
}

variable "administering" {
  description = "ARN of who administers, with MFA."
  type        = string
}

output "archiver_toml" {
  description = "An archiver.toml for each role: `terraform output -json archiver_toml | jq -r .archiver > archiver.toml`."
  value       = module.store.archiver_toml
}

output "role_arns" {
  description = "ARNs of the roles, for `role_arn` in the AWS configuration of a machine."
  value       = module.store.role_arns
}
