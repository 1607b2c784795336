# Everything that can be said: a prefix, Object Lock, longer retention, tasks by pattern, GitHub Actions as a runner.

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

  default_tags {
    tags = { project = "archive" }
  }
}

resource "aws_iam_openid_connect_provider" "github" {
  url            = "https://token.actions.githubusercontent.com"
  client_id_list = ["sts.amazonaws.com"]
}

module "store" {
  source = "../.."

  name   = var.name
  bucket = var.bucket
  prefix = "team/archive"

  application            = "checkpoint-archiver"
  store_id               = var.store_id
  break_glass_recipients = var.break_glass_recipients

  principals = {
    archiver      = [var.people.archiving]
    runner        = [var.people.running]
    sweeper       = [var.people.sweeping]
    restorer      = [var.people.restoring]
    administrator = [var.people.administering]
  }
  oidc = {
    provider_arn = aws_iam_openid_connect_provider.github.arn
    subjects     = { runner = ["repo:example/agents:ref:refs/heads/main"] }
  }
  tasks = {
    archiver = ["billing-*", "support-*"]
    runner   = ["billing-*"]
    restorer = ["billing-*"]
  }

  administrator_mfa    = true
  max_session_duration = 7200
  allowed_regions      = ["eu-central-1", "eu-west-1"]

  retention_days = { success = 60, record = 730 }
  object_lock    = { mode = "GOVERNANCE", days = 7 }

  key_deletion_days = 30
  key_rotation_days = 180

  tags = { data = "agent-runs" }
}

variable "name" {
  description = "What the roles and keys are called."
  type        = string
  default     = "team-archive"
}

variable "bucket" {
  description = "Name of the bucket that is made."
  type        = string
}

variable "store_id" {
  description = "Id that `archiver init` gave the store; null until then."
  type        = string
  default     = null
}

variable "break_glass_recipients" {
  description = "age recipients whose identities are kept offline."
  type        = list(string)
}

variable "people" {
  description = "ARNs of who may become each role."
  type = object({
    archiving     = string
    running       = string
    sweeping      = string
    restoring     = string
    administering = string
  })
}

output "archiver_toml" {
  description = "An archiver.toml for each role."
  value       = module.store.archiver_toml
}

output "role_arns" {
  description = "ARNs of the roles."
  value       = module.store.role_arns
}

output "bucket" {
  description = "Name of the bucket."
  value       = module.store.bucket
}

output "archive_key_arn" {
  description = "ARN of the key that runs are sealed to."
  value       = module.store.archive_key_arn
}

output "storage_key_arn" {
  description = "ARN of the key with which S3 encrypts."
  value       = module.store.storage_key_arn
}
